#include <fmt/format.h>

#include <ostream>

#include "simulator/report/format.hpp"
#include "simulator/report/report.hpp"
#include "simulator/trace/run_cost.hpp"

namespace rehearse {

std::vector<std::pair<std::string, std::string>> csv_fields(const Result& result) {
  const Metrics& m = result.metrics;
  std::vector<std::pair<std::string, std::string>> fields;
  const auto field = [&](const char* name, const std::string& value) { fields.emplace_back(name, value); };
  // "{}" is the shortest text that reads back as the same number.
  const auto number = [&](const char* name, double value) { field(name, fmt::format("{}", value)); };
  field("scenario", csv_field(result.scenario.name));
  number("step_time_s", m.step_time_s);
  number("samples_per_s", m.samples_per_s);
  field("tokens_per_s", m.tokens_per_s > 0 ? fmt::format("{}", m.tokens_per_s) : "");
  field("devices", fmt::format("{}", m.devices));
  number("model_tflops_per_device", m.model_tflops_per_device);
  number("mfu", m.mfu);
  number("hfu", m.hfu);
  number("compute_s", m.breakdown.compute_s);
  number("exposed_communication_s", m.breakdown.exposed_communication_s);
  number("data_stall_s", m.breakdown.data_stall_s);
  number("pipeline_bubble_s", m.breakdown.pipeline_bubble_s);
  number("other_s", m.breakdown.other_s);
  number("weights_bytes", m.memory.weights);
  number("gradients_bytes", m.memory.gradients);
  number("optimizer_bytes", m.memory.optimizer);
  number("activations_bytes", m.memory.activations);
  number("buffers_bytes", m.memory.buffers);
  number("memory_bytes", m.memory.total);
  number("capacity_bytes", m.memory.capacity);
  field("fits", m.memory.fits ? "true" : "false");
  number("network_bytes_per_step", m.network_bytes_per_step);
  field("busiest_link", csv_field(m.busiest_link));
  number("busiest_link_utilization", m.busiest_utilization);
  field("fidelity", csv_field(result.trace.engine.fidelity));
  field("classes", fmt::format("{}", result.trace.engine.classes));
  field("events", fmt::format("{}", result.trace.engine.events));
  const auto known = [&](const char* name, const std::optional<double>& value) {
    field(name, value ? fmt::format("{}", *value) : "");
  };
  const RunCost cost = run_cost(result.scenario, m);
  known("cost_per_step", cost.step.money);
  field("currency", csv_field(result.scenario.cost.currency));
  known("energy_wh_per_step", cost.step.energy_wh);
  known("carbon_g_per_step", cost.step.carbon_g);
  const TrainingCost target = cost.training.value_or(TrainingCost{});
  const auto of_target = [&](const char* name, const std::optional<double>& value) {
    known(name, cost.training ? value : std::nullopt);
  };
  of_target("target_steps", target.steps);
  of_target("target_seconds", target.seconds);
  of_target("target_device_hours", target.device_hours);
  of_target("target_cost", target.money);
  of_target("target_energy_kwh", target.energy_kwh);
  of_target("target_carbon_kg", target.carbon_kg);
  if (result.uncertainty) {
    number("step_time_low_s", result.uncertainty->low_s);
    number("step_time_high_s", result.uncertainty->high_s);
  }
  return fields;
}

void write_csv(const Result& result, std::ostream& out) {
  std::string header, row;
  for (const auto& [name, value] : csv_fields(result)) {
    header += (header.empty() ? "" : ",") + name;
    row += (row.empty() ? "" : ",") + value;
  }
  out << header << '\n' << row << '\n';
}

}  // namespace rehearse
