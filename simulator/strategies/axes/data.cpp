// Data parallelism: each rank takes its own micro-batches. A gradient strategy (gradients/) combines their
// gradients.
#include <fmt/format.h>

#include "models/text/document.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

extern const AxisEntry kDataAxis{
    "data",
    "ranks that split the batch",
    Purpose::gradient_sync,
    true,
    true,
    [](const StrategyChoice& choice) { return choice.data; },
    [](Section& strategy, StrategyChoice& choice) {
      choice.data = static_cast<int>(strategy.integer("data", 1, kMaxDegree, 1));
    },
    [](Section&, const Scenario&) {},
    // A micro-batch belongs to one rank, except that expert parallelism exchanges tokens between ranks.
    [](const Scenario& scenario) {
      std::vector<Factor> factors;
      if (places_experts(scenario)) {
        factors.push_back({"data", scenario.strategy.data, 1, AxisTable({Split::Kind::by, Dim::batch})});
        factors.back().sums_gradients = true;
      }
      return factors;
    },
    [](const StrategyChoice& choice) { return fmt::format("data {}", choice.data); },
    [](const Scenario&, const LinkPlace&) { return Advice(); },
};

}  // namespace rehearse
