// Pipeline parallelism: each rank holds the layers of a stage (layout/stages.hpp), whose work is not split.
#include <fmt/format.h>

#include "models/text/document.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

extern const AxisEntry kPipelineAxis{
    "pipeline",
    "stages into which the model is cut",
    Purpose::pipeline,
    true,
    false,
    [](const StrategyChoice& choice) { return choice.pipeline; },
    [](Section& strategy, StrategyChoice& choice) {
      choice.pipeline = static_cast<int>(strategy.integer("pipeline", 1, kMaxDegree, 1));
    },
    [](Section&, const Scenario&) {},
    [](const Scenario&) { return std::vector<Factor>(); },
    [](const StrategyChoice& choice) { return fmt::format("pipeline {}", choice.pipeline); },
    [](const Scenario&, const LinkPlace&) { return Advice(); },
};

}  // namespace rehearse
