// Computes the cost of a simulated or measured step, and of the training that the scenario asks for.
#pragma once

#include <optional>

#include "simulator/costs/operating_cost.hpp"
#include "simulator/trace/metrics.hpp"

namespace rehearse {

struct RunCost {
  OperatingRates rates;
  StepCost step;
  std::optional<TrainingCost> training;  // if training.tokens, samples or epochs is given
};
RunCost run_cost(const Scenario& scenario, const Metrics& metrics);

}  // namespace rehearse
