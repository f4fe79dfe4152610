// Splits an op into several ops.
#pragma once

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Returns the part of `whole`, a compute op of a pass, that covers segments first to end - 1 of the walk, or
// the half of it that `pass` names. If `chunks` is above 1, the op is one of that many equal shares of the
// tokens that run one after the other.
Op part_of_op(StepPlan& plan, const Op& whole, Pass pass, int first, int end, int chunks = 1);

// Turns `op` into chunk number `chunk` of `chunks` equal ones: the name says so, and a collective carries its
// share.
Op chunk_of(Op op, int chunk, int chunks);

}  // namespace rehearse
