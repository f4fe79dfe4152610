// Which computing of a program may run beside collectives of the same rank, by its streams and dependencies
// alone.
#pragma once

#include <vector>

#include "simulator/schedule/program_index.hpp"

namespace rehearse {

// By op: true for compute ops beside which a collective on another stream may be under way, in this
// repetition of the schedule or in one next to it, and for those collectives. Never false for such a pair;
// may be true where simulated times keep them apart, and is true for all of them in programs with repeats.
std::vector<bool> computes_beside_collectives(const Program& program, const ProgramIndex& index);

}  // namespace rehearse
