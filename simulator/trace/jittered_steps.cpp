#include "simulator/trace/jittered_steps.hpp"

#include <algorithm>
#include <numeric>

#include "simulator/trace/measurement.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {

Metrics evaluate_jittered(Trace& trace, const Scenario& scenario, const Plan& plan, int steps) {
  const int warmup = std::max(0, last_step_number(trace, 0) + 1 - steps);
  const StepTimes times = step_times(trace, 0, warmup);
  trace = up_to_step(trace, times.median_step);
  Metrics metrics = evaluate(trace, scenario, plan);
  std::vector<double> sorted = times.seconds;
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  };
  const double mean_s =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  const double longer = mean_s / metrics.step_time_s;
  metrics.step_time_s = mean_s;
  metrics.breakdown.scale(longer);
  for (double* rate : {&metrics.samples_per_s, &metrics.tokens_per_s, &metrics.model_tflops_per_device,
                       &metrics.mfu, &metrics.hfu, &metrics.busiest_utilization})
    *rate /= longer;
  metrics.distribution = StepDistribution{static_cast<int>(sorted.size()),
                                          sorted.front(),
                                          quantile(0.05),
                                          quantile(0.5),
                                          quantile(0.95),
                                          sorted.back()};
  return metrics;
}

}  // namespace rehearse
