// The table of gradient strategies; its lines are in gradient_strategies.inc.
#include <array>

#include "models/text/document.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

#define GRADIENT_STRATEGY(entry) extern const GradientStrategyEntry entry;
#include "gradient_strategies.inc"  // beside this file: tests compile both with another line
#undef GRADIENT_STRATEGY

std::span<const GradientStrategyEntry* const> gradient_strategies() {
#define GRADIENT_STRATEGY(entry) &(entry),
  static constexpr std::array kAll = {
#include "gradient_strategies.inc"
  };
#undef GRADIENT_STRATEGY
  return kAll;
}

const GradientStrategyEntry* find_gradient_strategy(std::string_view name) {
  for (const GradientStrategyEntry* entry : gradient_strategies())
    if (entry->name == name) return entry;
  return nullptr;
}

std::shared_ptr<const GradientStrategy> gradient_strategy(const Scenario& scenario) {
  if (scenario.strategy.gradient_strategy) return scenario.strategy.gradient_strategy;
  Document nothing = Document::parse_text("", scenario.name);
  Section section = nothing.root();
  StrategyChoice defaults;
  return find_gradient_strategy(scenario.strategy.gradients)->read(section, defaults);
}

WaitedFor GradientStrategy::waited_for(const Scenario&) const {
  return WaitedFor::slower_ranks;
}

Advice GradientStrategy::less_communication(const Scenario&, const LinkPlace&) const {
  return {};
}

Advice GradientStrategy::less_waiting(const Scenario& scenario, const LinkPlace& busiest) const {
  return less_communication(scenario, busiest);
}

Advice GradientStrategy::less_gathering(const Scenario&) const {
  return {};
}

std::shared_ptr<const GradientStrategy> GradientStrategy::sharded(int) const {
  return nullptr;
}

std::optional<ServerNodes> GradientStrategy::server_nodes(Section&, const StrategyChoice&) const {
  return std::nullopt;
}

std::string GradientStrategy::learns_otherwise(const Scenario&) const {
  return {};
}

void GradientStrategy::fit(Section&, const Scenario&) const {}

std::unique_ptr<StageHooks> GradientStrategy::worker(StepPlan& plan, int stage) const {
  return std::make_unique<StageHooks>(plan, begin_stage(plan, stage, {}));
}

std::vector<StageProgram> GradientStrategy::write_workers(StepPlan& plan) const {
  std::vector<StageProgram> stages;
  for (int s = 0; s < plan.scenario.strategy.pipeline; ++s) stages.push_back(write_stage(*worker(plan, s)));
  return stages;
}

}  // namespace rehearse
