// Finds the compute ops of a program that may run beside collectives of the same rank, using only its streams
// and dependencies.
#pragma once

#include <vector>

#include "simulator/schedule/program_index.hpp"

namespace rehearse {

// Returns, by op, true for compute ops during which a collective on another stream may be under way, in this
// repetition of the schedule or in an adjacent one, and for those collectives. The result is never false for
// ops that overlap, but can be true for ops that simulated times keep apart. It is true for all compute ops
// and collectives of programs with repeats.
std::vector<bool> computes_beside_collectives(const Program& program, const ProgramIndex& index);

}  // namespace rehearse
