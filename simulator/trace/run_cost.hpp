// What a simulated or measured step costs, and the training that the scenario asks for.
#pragma once

#include <optional>

#include "simulator/costs/operating_cost.hpp"
#include "simulator/trace/metrics.hpp"

namespace rehearse {

struct RunCost {
  OperatingRates rates;
  StepCost step;
  std::optional<TrainingCost> training;  // where training.tokens, samples or epochs is given
};
RunCost run_cost(const Scenario& scenario, const Metrics& metrics);

}  // namespace rehearse
