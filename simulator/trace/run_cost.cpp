#include "simulator/trace/run_cost.hpp"

namespace rehearse {

RunCost run_cost(const Scenario& scenario, const Metrics& metrics) {
  const double step_s = metrics.step_time_s;
  RunCost cost;
  cost.rates = operating_rates(*scenario.cluster, scenario.cost);
  cost.step = step_cost(cost.rates, step_s, step_s > 0 ? metrics.breakdown.compute_s / step_s : 0);
  if (scenario.training.target_samples > 0)
    cost.training = training_cost(cost.rates, cost.step, step_s, scenario.training.global_batch,
                                  scenario.training.target_samples);
  return cost;
}

}  // namespace rehearse
