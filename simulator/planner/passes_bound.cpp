#include "simulator/planner/passes_bound.hpp"

#include "simulator/planner/plan_bounds.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {
namespace {

CoreChoice core_of(const Scenario& scenario) {
  const StrategyChoice& s = scenario.strategy;
  CoreChoice core;
  core.tensor = s.tensor;
  core.context = s.context;
  core.context_kind = s.context_kind;
  core.pipeline = s.pipeline;
  core.data = s.data;
  core.expert = s.expert;
  core.expert_tensor = s.expert_tensor;
  core.sequence_parallel = s.sequence_parallel;
  core.micro_batch = static_cast<int>(scenario.training.micro_batch);
  core.recompute = scenario.training.recompute;
  core.recompute_layers = scenario.training.recompute_layers;
  core.schedule = s.schedule;
  core.virtual_stages = s.virtual_stages;
  return core;
}

GradientChoice gradients_of(const Scenario& scenario) {
  GradientChoice gradients;
  const auto strategy = gradient_strategy(scenario);
  if (const std::optional<SharedState> shared = strategy->shared_state(scenario)) {
    constexpr std::array<Sharing, 3> kByStage = {Sharing::optimizer, Sharing::gradients, Sharing::weights};
    gradients.sharing = shared->replicas > 1 && shared->stage == 3
                            ? Sharing::weights_in_node
                            : kByStage[static_cast<std::size_t>(shared->stage - 1)];
  } else if (scenario.strategy.gradients != "all-reduce") {
    gradients.servers = 1;
  }
  return gradients;
}

}  // namespace

PassesBound passes_bound(const Scenario& scenario, bool reserves) {
  PlanBounds bounds(scenario, reserves ? std::nullopt : std::optional<double>(0));
  const CoreBound core = bounds.core_bound(core_of(scenario));
  const OffloadChoice& offload = scenario.strategy.offload;
  const bool on_hosts = offload.optimizer != OffloadTo::none || offload.parameters != OffloadTo::none;
  return {core.seconds, on_hosts ? 0 : core.bytes[holding_of(gradients_of(scenario))]};
}

}  // namespace rehearse
