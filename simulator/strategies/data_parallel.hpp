// Data parallelism: gradients are summed over the data axis, then every rank updates its own copy of the
// weights.
#pragma once

#include "simulator/strategies/stage_program.hpp"

namespace rehearse {

// All-reduces of the stage's buckets, each as soon as its backward pass is done (`overlap`) or all behind it,
// and of a tied embedding between first and last stage; then the optimizer's update. Writes nothing without
// parameters.
void write_all_reduce(StepPlan& plan, StageProgram& stage);

}  // namespace rehearse
