// Writes the passes of a pipeline stage's micro-batches, and its exchanges with its neighbours.
#pragma once

#include <functional>
#include <vector>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Ops that a strategy adds between the passes; the hooks can write ops to any stream.
struct PassHooks {
  std::function<void(int microbatch)> before_forward;
  // `received`: the op that brought the gradient of the stage's output; -1 if the pass waits for none.
  std::function<void(const PassItem& item, int received)> before_backward;
  // Called after the backward pass that completes a bucket's gradients: the last micro-batch's, or every
  // micro-batch's if gradients are sent after each pass.
  std::function<void(const PassItem& item, std::size_t bucket)> behind_bucket;
  // Called before a pass over a bucket's layers, if weights are gathered for each pass.
  struct Weights {
    int ready = -1;   // the op that the pass waits for; -1: none
    int tensor = -1;  // the tensor that it reads
  };
  std::function<Weights(const PassItem& item, std::size_t bucket)> gather_weights;
  // The tensor to which a backward pass writes a bucket's gradients; without this hook,
  // StageProgram::gradients.
  struct Gradients {
    int tensor = -1;
    int free = -1;  // the op that must have ended before; -1: none
  };
  std::function<Gradients(const PassItem& item, std::size_t bucket)> gradients_of_pass;
  std::function<void(int microbatch)> behind_backward;
};

// Writes the passes of all micro-batches and their transfers to the stage's program.
void write_passes(StepPlan& plan, StageProgram& stage, const PassHooks& hooks = {});

// Writes the workers' programs, one per stage: its passes, followed by what `behind` adds. Moves the finished
// programs to plan.schedule and returns the rest of each StageProgram.
std::vector<StageProgram> write_stages(StepPlan& plan, StageTraffic traffic,
                                       const std::function<void(StageProgram&)>& behind);

}  // namespace rehearse
