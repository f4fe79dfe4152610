#include "simulator/trace/starting_phases.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// Returns the mean of a rate, weighted by step time.
template <class Rate>
double mean_rate(const std::vector<Metrics>& phases, Rate rate) {
  double sum = 0, seconds = 0;
  for (const Metrics& m : phases) {
    sum += rate(m) * m.step_time_s;
    seconds += m.step_time_s;
  }
  return sum / seconds;
}

Breakdown mean_breakdown(const std::vector<Metrics>& phases) {
  Breakdown mean;
  for (const Metrics& m : phases) {
    mean.compute_s += m.breakdown.compute_s;
    mean.exposed_communication_s += m.breakdown.exposed_communication_s;
    mean.data_stall_s += m.breakdown.data_stall_s;
    mean.pipeline_bubble_s += m.breakdown.pipeline_bubble_s;
    mean.other_s += m.breakdown.other_s;
    mean.launches_s += m.breakdown.launches_s;
    mean.process_s += m.breakdown.process_s;
    mean.slowed_s += m.breakdown.slowed_s;
    for (const auto& [purpose, seconds] : m.breakdown.exposed_s) mean.exposed_s[purpose] += seconds;
  }
  mean.scale(1 / static_cast<double>(phases.size()));
  return mean;
}

AsynchronyFigures figures_of_all(const std::vector<Metrics>& phases) {
  AsynchronyFigures all = *phases.front().asynchrony;
  all.window_begin_s = 0;
  all.window_end_s = 0;
  all.staleness.clear();
  all.link_bytes_per_s.clear();
  for (AsynchronyFigures::Worker& worker : all.workers) worker = {worker.rank};
  double seconds = 0;
  for (const Metrics& m : phases) seconds += m.step_time_s;
  AsynchronyFigures::StartingPhases spread{static_cast<int>(phases.size()), phases.front().step_time_s,
                                           phases.front().step_time_s};
  for (const Metrics& m : phases) {
    const AsynchronyFigures& own = *m.asynchrony;
    const double weight = m.step_time_s / seconds;
    all.window_end_s += own.window_end_s - own.window_begin_s;
    for (const auto& [updates, gradients] : own.staleness) all.staleness[updates] += gradients;
    for (std::size_t w = 0; w < own.workers.size(); ++w) {
      AsynchronyFigures::Worker& worker = all.workers[w];
      worker.rounds += own.workers[w].rounds;
      worker.rounds_per_s += weight * own.workers[w].rounds_per_s;
      worker.samples_per_s += weight * own.workers[w].samples_per_s;
    }
    for (const auto& [link, bytes_per_s] : own.link_bytes_per_s)
      all.link_bytes_per_s[link] += weight * bytes_per_s;
    spread.least_s = std::min(spread.least_s, m.step_time_s);
    spread.most_s = std::max(spread.most_s, m.step_time_s);
  }
  all.samples_per_s = mean_rate(phases, [](const Metrics& m) { return m.samples_per_s; });
  all.phases = spread;
  return all;
}

}  // namespace

Metrics mean_over_phases(const std::vector<Metrics>& phases, const Trace& trace, const Cluster& cluster) {
  Metrics mean = phases.front();
  mean.step_time_s = 0;
  for (const Metrics& m : phases) {
    mean.step_time_s += m.step_time_s / static_cast<double>(phases.size());
    if (m.memory.total > mean.memory.total) mean.memory = m.memory;
  }
  for (double Metrics::*rate : {&Metrics::samples_per_s, &Metrics::tokens_per_s,
                                &Metrics::model_tflops_per_device, &Metrics::mfu, &Metrics::hfu})
    mean.*rate = mean_rate(phases, [&](const Metrics& m) { return m.*rate; });
  mean.breakdown = mean_breakdown(phases);
  mean.asynchrony = figures_of_all(phases);
  set_traffic(mean, step_traffic(trace, 0, cluster, mean.asynchrony), cluster);
  return mean;
}

}  // namespace rehearse
