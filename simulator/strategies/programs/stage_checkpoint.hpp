// Adds the ops that write a checkpoint to a complete schedule.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct StepPlan;

// Adds to a schedule of which all programs are written the memory that checkpoints need and, with `cycle`, a
// checkpoint and as many repetitions as it says. Nothing without a checkpoint in the scenario. Throws
// InputError for checkpoints of ranks that do not wait for each other, and for those that a tier has no place
// for.
CheckpointBytes complete_checkpoint(StepPlan& plan, const CheckpointCycle* cycle);

}  // namespace rehearse
