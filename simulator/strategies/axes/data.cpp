// Data parallelism: each rank takes micro-batches of its own, so that a micro-batch is not split. What
// becomes of the gradients is a gradient strategy's (gradients/).
#include <fmt/format.h>

#include "models/text/document.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

extern const AxisEntry kDataAxis{
    "data",
    "ranks that share a batch",
    Purpose::gradient_sync,
    true,
    [](const StrategyChoice& choice) { return choice.data; },
    [](Section& strategy, StrategyChoice& choice) {
      choice.data = static_cast<int>(strategy.integer("data", 1, kMaxDegree, 1));
    },
    [](Section&, const Scenario&) {},
    [](const Scenario&) { return std::vector<Factor>(); },
    [](const StrategyChoice& choice) { return fmt::format("data {}", choice.data); },
    [](const Scenario&) { return Advice(); },
};

}  // namespace rehearse
