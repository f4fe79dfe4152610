// ZeRO (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020),
// whose first stage is also Megatron-LM's distributed optimizer, and PyTorch FSDP (Zhao et al., "PyTorch
// FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023). Stage 1 shards the optimizer state,
// stage 2 also the gradients, and stage 3 and FSDP also the weights, which are gathered layer by layer. A
// rank's state can be offloaded from its device (offload.hpp).
#include "simulator/strategies/gradients/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "models/text/document.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/offload.hpp"
#include "simulator/strategies/gradients/shard_hooks.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

enum class Fsdp { none, full, hybrid };
constexpr std::array<std::string_view, 3> kFsdpNames = {"none", "full", "hybrid"};

struct ShardChoice {
  int stage = 0;  // ZeRO stage: 1 to 3
  Fsdp fsdp = Fsdp::none;
  int degree = 0;       // hybrid: ranks that share one copy; 0: those of a node
  int prefetch = 1;     // units whose weights are gathered ahead of their pass; 0: none
  bool reshard = true;  // stage 3: weights are also dropped after the forward pass
};

// Divides the ranks with the same weights into `replicas` groups of `shards` ranks; each group holds
// everything once.
struct ShardGroups {
  int shards = 1, replicas = 1;
};

// Returns the largest number of neighbours with the same weights that share a node and divide the number of
// all of them.
int shards_in_node(const Scenario& scenario) {
  int inside = 1;  // ranks between such neighbours
  for (const std::string& name : scenario.strategy.placement) {
    const AxisEntry* axis = find_axis(name);
    if (axis->same_weights && axis->degree(scenario.strategy) > 1) break;
    inside *= axis->degree(scenario.strategy);
  }
  return std::gcd(weight_copies(scenario.strategy), std::max(1, scenario.cluster->node().devices / inside));
}

ShardGroups shard_groups(const ShardChoice& choice, const Scenario& scenario) {
  const int ranks = weight_copies(scenario.strategy);
  if (choice.fsdp != Fsdp::hybrid) return {ranks, 1};
  const int shards = choice.degree > 0 ? choice.degree : shards_in_node(scenario);
  return {shards, ranks / shards};
}

class Shards : public GradientStrategy {
public:
  explicit Shards(ShardChoice choice) : choice_(choice) {}

  std::string headline(const Scenario& scenario) const override {
    const std::string where = offload_text(scenario.strategy.offload);
    if (choice_.fsdp == Fsdp::none) return fmt::format("ZeRO-{}{}", choice_.stage, where);
    const ShardGroups groups = shard_groups(choice_, scenario);
    return (choice_.fsdp == Fsdp::full ? "FSDP" : fmt::format("hybrid FSDP, shards of {}", groups.shards)) +
           where;
  }

  ContextGradients context_gradients() const override { return ContextGradients::with_data; }

  void fit(Section& strategy, const Scenario& scenario) const override {
    if (choice_.degree > 0 && weight_copies(scenario.strategy) % choice_.degree != 0)
      strategy.refuse("shard_degree", fmt::format("{}", choice_.degree),
                      fmt::format("a divisor of {}, strategy.data{}", weight_copies(scenario.strategy),
                                  scenario.strategy.context > 1 ? " x strategy.context" : ""));
    fit_offload(strategy, scenario);
  }

  Advice less_communication(const Scenario& scenario, const LinkPlace& busiest) const override {
    if (choice_.stage < 2 || scenario.microbatches == 1)
      return GradientStrategy::less_communication(scenario, busiest);
    const StateBytes bytes = held_whole(scenario);
    Advice advice{"stage 1 sends gradients once a step, not after each micro-batch",
                  {"strategy.zero_stage=1"},
                  bytes.gradient + (choice_.stage == 3 ? bytes.weight : 0)};
    if (choice_.fsdp != Fsdp::none) advice.sets.insert(advice.sets.begin(), "strategy.fsdp=none");
    return advice;
  }

  Advice less_gathering(const Scenario& scenario) const override {
    if (scenario.strategy.overlap && choice_.prefetch == 0)
      return {"weights that are gathered ahead overlap with computation", {"strategy.prefetch=1"}};
    if (choice_.stage < 3 || !choice_.reshard) return {};
    return {"keeping the weights from the forward to the backward pass would send a third less",
            {"strategy.reshard_after_forward=false"},
            held_whole(scenario).weight};
  }

  std::optional<SharedState> shared_state(const Scenario& scenario) const override {
    const ShardGroups groups = shard_groups(choice_, scenario);
    return SharedState{choice_.stage, groups.shards, groups.replicas, choice_.prefetch, choice_.reshard};
  }

  std::shared_ptr<const GradientStrategy> sharded(int stage) const override {
    return choice_.fsdp == Fsdp::none && stage > choice_.stage ? zero_stage(stage) : nullptr;
  }

  void write(StepPlan& plan) const override {
    write_workers(plan);
    note_tied_embedding(plan);
  }

protected:
  std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const override {
    return shard_hooks(plan, stage, *shared_state(plan.scenario));
  }

private:
  // Returns the bytes of a pipeline stage (mean over all stages) if a rank held all of it.
  static StateBytes held_whole(const Scenario& scenario) {
    const Training& training = scenario.training;
    double parameters = 0;
    for (const LayerCost& layer : layer_costs(scenario.model, pass_shape(scenario)))
      parameters += layer.parameters / scenario.strategy.pipeline;
    StateBytes bytes = state_bytes(training.optimizer, training.precision, training.gradient_precision);
    for (double* each : {&bytes.weight, &bytes.gradient, &bytes.optimizer}) *each *= parameters;
    return bytes;
  }

  ShardChoice choice_;
};

}  // namespace

std::shared_ptr<const GradientStrategy> zero_stage(int stage) {
  ShardChoice choice;
  choice.stage = stage;
  return std::make_shared<Shards>(choice);
}

std::shared_ptr<const GradientStrategy> read_shards(Section& strategy, StrategyChoice& choice) {
  ShardChoice shards;
  shards.fsdp = static_cast<Fsdp>(strategy.choice("fsdp", kFsdpNames, 0));
  const bool fsdp = shards.fsdp != Fsdp::none;
  shards.stage = static_cast<int>(strategy.integer("zero_stage", 0, 3, fsdp ? 3 : 0));
  shards.prefetch = static_cast<int>(strategy.integer("prefetch", 0, 1000, 1));
  shards.reshard = strategy.boolean("reshard_after_forward", true);
  shards.degree = static_cast<int>(strategy.integer("shard_degree", 1, kMaxDegree, 1));
  if (!strategy.has("shard_degree")) shards.degree = 0;

  const auto fsdp_text = fmt::format("fsdp = \"{}\"", kFsdpNames[static_cast<std::size_t>(shards.fsdp)]);
  if (fsdp && shards.stage != 3)
    strategy.refuse("zero_stage", fmt::format("{} with {}", shards.stage, fsdp_text),
                    "3, or fsdp = \"none\"");
  if (shards.fsdp != Fsdp::hybrid && strategy.has("shard_degree"))
    strategy.refuse_inapplicable("shard_degree", fmt::format("{} with {}", shards.degree, fsdp_text),
                                 "fsdp = \"hybrid\", or no such key");
  if (shards.stage < 3 && !shards.reshard)
    strategy.refuse_inapplicable("reshard_after_forward",
                                 fmt::format("false with zero_stage = {}", shards.stage),
                                 "zero_stage = 3 or fsdp, or no such key");
  const OffloadChoice offload = read_offload(strategy, choice, shards.stage);
  if (choice.gradients == "all-reduce") choice.offload = offload;
  if (shards.stage == 0) return nullptr;
  if (choice.gradients != "all-reduce")
    strategy.refuse_inapplicable(
        fsdp ? "fsdp" : "zero_stage",
        fmt::format("{} with gradients = \"{}\"",
                    fsdp ? fmt::format("\"{}\"", kFsdpNames[static_cast<std::size_t>(shards.fsdp)])
                         : fmt::format("{}", shards.stage),
                    choice.gradients),
        fmt::format("gradients = \"all-reduce\", or {}", fsdp ? "\"none\"" : "0"));
  return std::make_shared<Shards>(shards);
}

}  // namespace rehearse
