#include "simulator/report/comparison.hpp"

#include <algorithm>

#include "simulator/trace/run_cost.hpp"

namespace rehearse {

std::vector<SettingChange> changed_settings(const Scenario& base, const Scenario& other) {
  const auto find = [](const Scenario& scenario, const std::string& key) -> std::optional<std::string> {
    for (const auto& [its_key, value] : scenario.settings)
      if (its_key == key) return value;
    return std::nullopt;
  };
  std::vector<SettingChange> changes;
  for (const auto& [key, value] : base.settings) {
    const std::optional<std::string> its = find(other, key);
    if (its != value) changes.push_back({key, value, its});
  }
  for (const auto& [key, value] : other.settings)
    if (!find(base, key)) changes.push_back({key, std::nullopt, value});
  return changes;
}

std::vector<Figure> figures_of(const Result& result, double samples) {
  const Metrics& m = result.metrics;
  using enum Figure::Kind;
  std::vector<Figure> figures = {
      {seconds, "step_time_s", samples == 1 ? "step" : "step, per sample", m.step_time_s / samples},
      {rate, "samples_per_s", result.scenario.model.sample_unit + "/s", m.samples_per_s},
      {share, "mfu", "MFU", m.mfu},
      {seconds, "compute_s", "compute", m.breakdown.compute_s / samples},
      {seconds, "pipeline_bubble_s", "pipeline bubble", m.breakdown.pipeline_bubble_s / samples}};
  for (const auto& [purpose, exposed_s] : m.breakdown.exposed_s)
    figures.push_back(
        {seconds, "exposed " + waiting(purpose) + "_s", "exposed " + waiting(purpose), exposed_s / samples});
  figures.push_back({seconds, "data_stall_s", "waiting for data", m.breakdown.data_stall_s / samples});
  if (m.breakdown.launches_s > 0)
    figures.push_back(
        {seconds, "kernel_launch_wait_s", "waiting for kernel launches", m.breakdown.launches_s / samples});
  if (m.breakdown.checkpoint_s > 0)
    figures.push_back({seconds, "checkpoint_stall_s", kCheckpointStall, m.breakdown.checkpoint_s / samples});
  if (m.breakdown.process_s > 0)
    figures.push_back({seconds, "profiled_wait_s", kProfiledWait, m.breakdown.process_s / samples});
  figures.push_back({seconds, "other_s", "waiting for slower ranks", m.breakdown.waiting_s() / samples});
  figures.push_back({bytes, "memory_bytes", "memory", m.memory.total});
  figures.push_back({bytes_of_step, "network_bytes_per_step",
                     samples == 1 ? "network, a step" : "network, per sample",
                     m.network_bytes_per_step / samples});
  figures.push_back({utilization, "busiest_link_utilization", "busiest link", m.busiest_utilization});
  const StepCost cost = run_cost(result.scenario, m).step;
  if (cost.money)
    figures.push_back(
        {money, "cost_per_step", samples == 1 ? "cost, a step" : "cost, per sample", *cost.money / samples});
  if (cost.energy_wh)
    figures.push_back({energy, "energy_wh_per_step", samples == 1 ? "energy, a step" : "energy, per sample",
                       *cost.energy_wh / samples});
  for (Figure& figure : figures) std::replace(figure.key.begin(), figure.key.end(), ' ', '_');
  return figures;
}

double samples_per_step(const Result& result) {
  return result.metrics.samples / result.plan.schedule->optimizer_steps;
}

bool same_samples(const Result& base, const Result& other) {
  return samples_per_step(base) == samples_per_step(other);
}

}  // namespace rehearse
