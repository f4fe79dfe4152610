// What a gradient strategy adds to the program of a pipeline stage: hooks in the order in which they are
// called.
#pragma once

#include <utility>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Without overrides, every rank updates its own weights with its own gradients. Hooks can write ops to any
// stream of the stage's program.
class StageHooks {
public:
  StageHooks(StepPlan& plan, StageProgram stage) : plan_(plan), stage_(std::move(stage)) {}
  StageHooks(const StageHooks&) = delete;
  StageHooks& operator=(const StageHooks&) = delete;
  virtual ~StageHooks() = default;

  // ----- between the passes

  virtual void before_forward(int microbatch) { (void)microbatch; }
  // `received`: the op that brought the gradient of the stage's output; -1 if the pass waits for none.
  virtual void before_backward(const PassItem& item, int received) { (void)item, (void)received; }
  // The weights that a pass over a bucket's layers reads.
  struct Weights {
    int ready = -1;   // the op that the pass waits for; -1: none
    int tensor = -1;  // the tensor that it reads
  };
  virtual Weights weights_for(const PassItem& item, std::size_t bucket) {
    return (void)item, Weights{-1, stage_.weights[bucket]};
  }
  // Where a backward pass writes a bucket's gradients.
  struct Gradients {
    int tensor = -1;
    int free = -1;  // the op that must have ended before; -1: none
  };
  virtual Gradients gradients_for(const PassItem& item, std::size_t bucket) {
    return (void)item, Gradients{stage_.gradients[bucket], -1};
  }
  // Called behind the op that completes a bucket's gradients, StageProgram::backward_of_bucket: in the last
  // micro-batch's backward pass, or in all of them with StageTraffic::every_backward.
  virtual void on_bucket_complete(const PassItem& item, std::size_t bucket) { (void)item, (void)bucket; }
  virtual void behind_backward(int microbatch) { (void)microbatch; }

  // ----- behind the passes of each optimizer step, if the stage has parameters

  virtual void behind_passes() {}
  // Sends a bucket's gradients, in the order in which the buckets are complete. `complete`: the op that must
  // have ended before: the one that completes the bucket or, without overlap, the last one of all passes.
  virtual void send_bucket(std::size_t bucket, int complete) { (void)bucket, (void)complete; }
  // Sums the gradients of a tied embedding and updates the weights.
  virtual void end_of_step();

  // Called once for a schedule, behind the last of its optimizer steps.
  virtual void end_of_round() {}

  StepPlan& plan() { return plan_; }
  StageProgram& stage() { return stage_; }

protected:
  // The first pass of the next step over a bucket's layers waits for `op`, which brings their weights.
  void before_first_use(std::size_t bucket, int op) {
    stage_.program.ops[static_cast<std::size_t>(stage_.forward_of_bucket[bucket])].after.push_back({op, 1});
  }

  StepPlan& plan_;
  StageProgram stage_;
};

// Writes the stage's program for all optimizer steps of the schedule, moves it to plan.schedule and returns
// the rest of the StageProgram.
StageProgram write_stage(StageHooks& hooks);
inline StageProgram write_stage(StageHooks&& hooks) {
  return write_stage(hooks);
}

}  // namespace rehearse
