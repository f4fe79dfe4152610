// Finds the compute ops of a program that may run beside collectives of the same rank, using only its streams
// and dependencies.
#pragma once

#include <vector>

#include "simulator/schedule/program_index.hpp"

namespace rehearse {

// Returns for each op: true for compute ops during which a collective on another stream may be under way, in
// this repetition of the schedule or in an adjacent one, and true for those collectives. Never false for such
// a pair. Can be true where simulated times keep the two apart, and is true for all compute ops and
// collectives of programs with repeats.
std::vector<bool> computes_beside_collectives(const Program& program, const ProgramIndex& index);

}  // namespace rehearse
