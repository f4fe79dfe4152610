// Local SGD: every rank takes `every` optimizer steps on its own, then all average their weights. Stich,
// "Local SGD Converges Fast and Communicates Little" (ICLR 2019); Lin et al., "Don't Use Large Mini-Batches,
// Use Local SGD" (ICLR 2020), where the moments stay local. One schedule contains one such round.
#include <fmt/format.h>

#include "models/text/document.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

class LocalSteps : public StageHooks {
public:
  using StageHooks::StageHooks;

  // Averages the weights from which the optimizer continues: in mixed precision, these are the fp32 master
  // weights, which are then cast to the training precision.
  void end_of_round() override {
    if (plan_.scenario.strategy.data == 1) return;
    const double weight_bytes = element_bytes(plan_.scenario.training.precision);
    const double master_bytes = std::max(weight_bytes, element_bytes(Precision::fp32));
    const bool casts = master_bytes > weight_bytes;
    Op average = collective_op(plan_, stage_.program, "average weights", "compute",
                               CollectiveKind::all_reduce, stage_.parameters() * master_bytes);
    average.collective.reduction = Collective::Reduction::mean;
    average.first_layer = stage_.layers.first;
    average.last_layer = stage_.layers.last;
    average.writes = casts ? stage_.optimizer_state : stage_.weights;
    add_op(stage_.program, std::move(average));
    if (!casts) return;
    Work work;
    work.name = fmt::format("cast weights of stage {}", stage_.stage);
    work.precision = plan_.scenario.training.precision;
    work.kernels = {memory_kernel(stage_.parameters() * (master_bytes + weight_bytes))};
    Op cast = compute_op(plan_, stage_.program, "cast weights", Pass::optimizer, std::move(work));
    cast.reads = stage_.optimizer_state;
    cast.writes = stage_.weights;
    add_op(stage_.program, std::move(cast));
  }
};

class LocalSgd : public GradientStrategy {
public:
  explicit LocalSgd(int every) : every_(every) {}

  std::string headline(const Scenario&) const override {
    return every_ == 1 ? "weights averaged every step"
                       : fmt::format("weights averaged every {} steps", every_);
  }

  ContextGradients context_gradients() const override { return ContextGradients::apart; }

  // The schedule contains all passes of a round, so their number is limited.
  void fit(Section& strategy, const Scenario& scenario) const override {
    const Training& training = scenario.training;
    const auto microbatches =
        static_cast<double>(training.global_batch / (training.micro_batch * scenario.strategy.data));
    const std::int64_t most_passes =
        kMaxPasses / (scenario.strategy.pipeline * scenario.strategy.virtual_stages);
    const double most = std::min<double>(kMaxMicrobatches, most_passes);
    if (every_ * microbatches > most)
      strategy.section("local_sgd")
          .refuse("every", fmt::format("{}, each step of {} micro-batches", every_, microbatches),
                  fmt::format("at most {} micro-batches from one averaging to the next", most));
  }

  Advice less_communication(const Scenario&, const LinkPlace&) const override {
    return {"averaging half as often would need half of it",
            {fmt::format("strategy.local_sgd.every={}", 2 * every_)}};
  }

  std::string learns_otherwise(const Scenario&) const override {
    return "local SGD averages weights only every few steps";
  }

  int optimizer_steps() const override { return every_; }

  void write(StepPlan& plan) const override {
    plan.schedule.optimizer_steps = every_;
    plan.schedule.samples *= every_;
    plan.schedule.tokens *= every_;
    write_workers(plan);
  }

protected:
  std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const override {
    return std::make_unique<LocalSteps>(plan, begin_stage(plan, stage, {}));
  }

private:
  int every_;
};

std::shared_ptr<const GradientStrategy> read_local_sgd(Section& strategy, StrategyChoice&) {
  Section own = strategy.section("local_sgd");
  const auto every = static_cast<int>(own.integer("every", 1, kMaxMicrobatches, 8));
  own.finish();
  return std::make_shared<LocalSgd>(every);
}

}  // namespace

extern const GradientStrategyEntry kLocalSgdStrategy{
    "local-sgd", "data parallel: independent steps, then weights are averaged by all-reduce",
    "Every GPU takes some optimizer steps on its share of the batch alone; then all average their weights\n"
    "(Stich 2019). Figures are of one optimizer step: a share of the round from one averaging to the next.",
    "data = 8\n"
    "gradients = \"local-sgd\"\n\n"
    "[strategy.local_sgd]\n"
    "every = 8                   # optimizer steps from one averaging to the next\n",
    read_local_sgd};

}  // namespace rehearse
