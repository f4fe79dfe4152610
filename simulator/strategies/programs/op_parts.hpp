// Parts of an op that is written as several.
#pragma once

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// What `whole`, a compute op of a pass, does for segments first to end - 1 of the walk, or that half of it
// which `pass` names. `chunks` above 1: for so many equal shares of the tokens one after the other, of which
// this is one.
Op part_of_op(StepPlan& plan, const Op& whole, Pass pass, int first, int end, int chunks = 1);

// Chunk number `chunk` of so many equal ones: the name tells, and a collective carries its share.
Op chunk_of(Op op, int chunk, int chunks);

}  // namespace rehearse
