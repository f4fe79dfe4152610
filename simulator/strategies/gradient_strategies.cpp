// The table of ways to bring gradients together. A new one is declared and listed here.
#include <array>

#include "models/base/document.hpp"
#include "simulator/strategies/gradient_strategy.hpp"

namespace rehearse {

extern const GradientStrategyEntry kAllReduceStrategy;                    // all_reduce.cpp
extern const GradientStrategyEntry kParameterServerStrategy;              // parameter_server.cpp
extern const GradientStrategyEntry kHierarchicalParameterServerStrategy;  // hierarchical_parameter_server.cpp
extern const GradientStrategyEntry kFirstDeviceStrategy;                  // first_device.cpp
extern const GradientStrategyEntry kLocalSgdStrategy;                     // local_sgd.cpp

std::span<const GradientStrategyEntry* const> gradient_strategies() {
  static constexpr std::array kAll = {&kAllReduceStrategy, &kParameterServerStrategy,
                                      &kHierarchicalParameterServerStrategy, &kFirstDeviceStrategy,
                                      &kLocalSgdStrategy};
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

Advice GradientStrategy::less_communication(const Scenario&) const {
  return {};
}

std::optional<ServerNodes> GradientStrategy::server_nodes(Section&, const StrategyChoice&) const {
  return std::nullopt;
}

void GradientStrategy::fit(Section&, const Scenario&) const {}

}  // namespace rehearse
