// All-reduce that is delayed by one step: the gradients of step n are summed while step n + 1 computes, and
// applied at its end. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (ICML 2021), whose
// 2BW updates by W(t + 1) = W(t) - rate x gradient(W(t - 1)); Zhu et al., "Delayed Gradient Averaging"
// (NeurIPS 2021), with a delay of one step and without the local steps. The first step applies zeros.
#include <fmt/format.h>

#include "simulator/strategies/gradients/bucket_sums.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

class DelayedSums : public StageHooks {
public:
  DelayedSums(StepPlan& plan, int stage) : StageHooks(plan, begin_stage(plan, stage, {})) {
    for (std::size_t b = 0; b < stage_.buckets.size(); ++b) {
      delayed_.push_back(-1);
      if (stage_.gradients[b] < 0) continue;
      Tensor second = stage_.program.tensors[static_cast<std::size_t>(stage_.gradients[b])];
      second.name += " of the step before";
      delayed_.back() = add_tensor(stage_.program, std::move(second));
    }
  }

  void end_of_step() override {
    sync_tied_embedding(plan_, stage_);
    const int tied = last_op_of_stream(stage_.program, find_stream(stage_.program, "gradients"));
    std::vector<int> swaps;
    for (std::size_t b = 0; b < stage_.buckets.size(); ++b) swaps.push_back(write_swap(b, tied));
    add_op(stage_.program, optimizer_op(plan_, stage_));
    for (std::size_t b = 0; b < stage_.buckets.size(); ++b)
      if (swaps[b] >= 0) write_sum(b, swaps[b]);
  }

private:
  // The buffers change places, which takes no time. Returns the op; -1: the bucket has no parameters.
  int write_swap(std::size_t b, int after) {
    if (delayed_[b] < 0) return -1;
    Op swap = marker(plan_, stage_, fmt::format("swap gradients of bucket {}", b));
    swap.pass = Pass::gradient_sync;
    swap.action.kind = Action::Kind::swap;
    swap.first_layer = stage_.buckets[b].first_layer;
    swap.last_layer = stage_.buckets[b].last_layer;
    if (after >= 0) swap.after = {{after}};
    swap.reads = swap.writes = {stage_.gradients[b], delayed_[b]};
    return add_op(stage_.program, std::move(swap));
  }

  // With overlap, the sum runs during the next step, whose swap waits for it.
  void write_sum(std::size_t b, int swap) {
    const bool overlap = plan_.scenario.strategy.overlap;
    const std::size_t first = stage_.program.ops.size();
    const int last =
        write_bucket_sum(plan_, stage_, b, delayed_[b], overlap ? "gradients" : "compute", {{swap}});
    for (std::size_t i = first; i < stage_.program.ops.size(); ++i)
      stage_.program.ops[i].for_next_step = overlap;
    if (overlap && last >= 0) stage_.program.ops[static_cast<std::size_t>(swap)].after.push_back({last, 1});
  }

  std::vector<int> delayed_;  // by bucket: the gradients that are summed; -1: none
};

class DelayedAllReduce : public GradientStrategy {
public:
  std::string headline(const Scenario& scenario) const override {
    return fmt::format("{} all-reduce, delayed by a step",
                       kAlgorithmNames[static_cast<std::size_t>(scenario.strategy.all_reduce)]);
  }

  ContextGradients context_gradients() const override { return ContextGradients::with_data; }

  std::string learns_otherwise(const Scenario&) const override {
    return "gradients are applied one step late";
  }

  void write(StepPlan& plan) const override {
    write_workers(plan);
    note_tied_embedding(plan);
  }

protected:
  std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const override {
    return std::make_unique<DelayedSums>(plan, stage);
  }
};

}  // namespace

extern const GradientStrategyEntry kDelayedAllReduceStrategy{
    "delayed-all-reduce", "data parallel: gradients are summed during the next step and applied at its end",
    "Every GPU trains its share of the batch. The sum of a step's gradients runs while the next step\n"
    "computes, and is applied at the end of that step (PipeDream-2BW's delayed update, Narayanan et al.\n"
    "2021; Delayed Gradient Averaging, Zhu et al. 2021). It needs a second buffer of gradients.",
    "data = 8\n"
    "gradients = \"delayed-all-reduce\"\n"
    "all_reduce = \"ring\"         # as with gradients = \"all-reduce\"\n"
    "overlap = true              # false: the sum ends before the next step begins\n",
    [](Section&, StrategyChoice&) -> std::shared_ptr<const GradientStrategy> {
      return std::make_shared<DelayedAllReduce>();
    }};

}  // namespace rehearse
