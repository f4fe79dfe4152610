#include "simulator/report/json.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ostream>

#include "models/model.hpp"
#include "simulator/costs/reserved.hpp"
#include "simulator/report/input_sentence.hpp"
#include "simulator/report/peak_tensors.hpp"
#include "simulator/report/remedies.hpp"
#include "simulator/strategies/programs/stage_input.hpp"
#include "simulator/trace/run_cost.hpp"

namespace rehearse {

using nlohmann::ordered_json;

namespace {

constexpr double kRounding = 1e-9;  // of a simulated time

ordered_json to_json(const std::vector<Input>& inputs) {
  ordered_json json;
  constexpr std::array<const char*, kBasisNames.size()> lists = {"measured", "published", "interpolated",
                                                                 "guessed"};
  for (const char* list : lists) json[list] = ordered_json::array();
  for (const Input& input : inputs) {
    ordered_json& list = json[lists[static_cast<std::size_t>(input.basis)]];
    const std::string name = input.name + " of " + input.of;
    list.push_back(input.source.empty() ? name : name + ": " + input.source);
  }
  return json;
}

ordered_json path_json(const Result& result) {
  if (result.path.empty()) return nullptr;
  const double step_s = result.metrics.step_time_s;
  ordered_json json;
  json["segments"] = ordered_json::array();
  const double steps = result.plan.schedule->optimizer_steps;
  for (const auto& [kind, seconds] : path_by_kind(result))
    json["segments"].push_back(
        {{"kind", kind}, {"seconds", seconds / steps}, {"share", seconds / steps / step_s}});
  json["ten_percent_faster"] = ordered_json::array();
  for (const WhatIf& what_if : result.faster) {
    ordered_json one;
    one["resource"] = kResourceNames[static_cast<std::size_t>(what_if.resource)];
    one["step_time_s"] = nullptr;  // too expensive to simulate
    one["saved_s"] = nullptr;
    if (what_if.step_time_s) {
      one["step_time_s"] = *what_if.step_time_s;
      one["saved_s"] = step_s - *what_if.step_time_s;
    }
    one["path_saved_s"] = what_if.path_saved_s;
    if (what_if.step_time_s && *what_if.step_time_s > (1 + kRounding) * step_s)
      one["note"] =
          "the step gets longer: work that is ready sooner competes for links or servers with work that the "
          "step waits for";
    json["ten_percent_faster"].push_back(std::move(one));
  }
  return json;
}

ordered_json slow_json(const Result& result) {
  ordered_json json = ordered_json::array();
  for (const SlowCost& cost : result.slow) {
    ordered_json one;
    one["parts"] = ordered_json::array();
    for (const int part : cost.parts) {
      const SlowPart& slow = result.scenario.cluster->slow_parts[static_cast<std::size_t>(part)];
      one["parts"].push_back({{"name", slow.name}, {"factor", slow.factor}});
    }
    one["step_time_s"] = cost.step_time_s;
    one["saved_s"] = result.metrics.step_time_s - cost.step_time_s;
    json.push_back(std::move(one));
  }
  return json;
}

ordered_json to_json(const std::optional<AsynchronyFigures>& figures, const Scenario& scenario) {
  if (!figures) return nullptr;
  ordered_json json;
  const auto mode = static_cast<std::size_t>(scenario.strategy.parameter_server.mode);
  json["mode"] = kServerModeNames[mode];
  json["window_s"] = figures->window_end_s - figures->window_begin_s;
  json["starting_phases"] = nullptr;  // null for a measured run
  if (figures->phases)
    json["starting_phases"] = {{"count", figures->phases->count},
                               {"least_s", figures->phases->least_s},
                               {"most_s", figures->phases->most_s}};
  json["staleness"] = {{"mean", figures->mean_staleness()}, {"max", figures->most_staleness()}};
  json["staleness"]["histogram"] = ordered_json::object();
  for (const auto& [updates, gradients] : figures->staleness)
    json["staleness"]["histogram"][std::to_string(updates)] = gradients;
  json["workers"] = ordered_json::array();
  for (const AsynchronyFigures::Worker& worker : figures->workers)
    json["workers"].push_back(
        {{"rank", worker.rank}, {"samples_per_s", worker.samples_per_s}, {"steps", worker.rounds}});
  return json;
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

void add_cost(ordered_json& json, const Result& result) {
  const Scenario& s = result.scenario;
  const RunCost cost = run_cost(s, result.metrics);
  json["cost_per_step"] = or_null(cost.step.money);
  json["currency"] = s.cost.currency;
  json["energy_wh_per_step"] = or_null(cost.step.energy_wh);
  json["carbon_g_per_step"] = or_null(cost.step.carbon_g);
  ordered_json missing = ordered_json::array();
  for (const std::string& key : {cost.rates.missing_price, cost.rates.missing_power})
    if (!key.empty()) missing.push_back(key);
  if (!missing.empty()) json["cost_needs"] = std::move(missing);
  json["target"] = nullptr;  // the scenario does not say how long it trains
  if (!cost.training) return;
  ordered_json& target = json["target"];
  target["samples"] = s.training.target_samples;
  target["tokens"] = nullptr;
  const double tokens = tokens_per_sample(s.model, s.training.sequence_length);
  if (tokens > 0) target["tokens"] = s.training.target_samples * tokens;
  target["steps"] = static_cast<std::int64_t>(cost.training->steps);
  target["seconds"] = cost.training->seconds;
  target["device_hours"] = cost.training->device_hours;
  target["cost"] = or_null(cost.training->money);
  target["energy_kwh"] = or_null(cost.training->energy_kwh);
  target["carbon_kg"] = or_null(cost.training->carbon_kg);
}

}  // namespace

ordered_json to_json(const Uncertainty& uncertainty) {
  ordered_json json = ordered_json::array();
  for (const Uncertainty::Effect& effect : uncertainty.effects)
    json.push_back({{"constant", effect.constant},
                    {"basis", kBasisNames[static_cast<std::size_t>(effect.basis)]},
                    {"deviation", effect.deviation},
                    {"better_s", effect.better_s},
                    {"worse_s", effect.worse_s}});
  return json;
}

// Rates are those of all ranks together; null: that part takes no time.
ordered_json data_json(const Result& result) {
  const InputRates rates = input_rates(result.scenario);
  const auto rate = [](double per_s) {
    return std::isfinite(per_s) ? ordered_json(per_s) : ordered_json(nullptr);
  };
  return {{"workers_samples_per_s", rate(rates.workers)},
          {"storage_samples_per_s", rate(rates.storage)},
          {"devices_samples_per_s", trained_without_stalls(result)},
          {"hit_rate", rates.loading.hit_rate},
          {"read_bytes_per_step", result.metrics.samples_per_s * result.metrics.step_time_s *
                                      rates.loading.read_bytes / rates.loading.samples}};
}

ordered_json checkpoint_json(const Result& result) {
  const CheckpointCost& cost = *result.metrics.checkpoint;
  const CheckpointBytes& bytes = result.plan.checkpoint;
  return {{"every", result.scenario.checkpoint.every},
          {"interval_s", cost.interval_s},
          {"bytes", bytes.total},
          {"most_bytes_of_rank", bytes.most},
          {"blocked_s", cost.blocked_s},
          {"written_s", cost.written_s},
          {"stall_s", cost.stall_s},
          {"behind", cost.behind}};
}

ordered_json to_json(const Result& result) {
  const Metrics& m = result.metrics;
  ordered_json json;
  json["scenario"] = result.scenario.name;
  json["step_time_s"] = m.step_time_s;
  if (result.uncertainty) json["interval_s"] = {result.uncertainty->low_s, result.uncertainty->high_s};
  if (m.distribution)
    json["distribution"] = {{"steps", m.distribution->steps},   {"least_s", m.distribution->least_s},
                            {"low_s", m.distribution->low_s},   {"median_s", m.distribution->median_s},
                            {"high_s", m.distribution->high_s}, {"most_s", m.distribution->most_s}};
  json["samples_per_s"] = m.samples_per_s;
  json["tokens_per_s"] = nullptr;  // null if the model has no tokens
  if (m.tokens_per_s > 0) json["tokens_per_s"] = m.tokens_per_s;
  json["devices"] = m.devices;
  json["model_tflops_per_device"] = m.model_tflops_per_device;
  json["mfu"] = m.mfu;
  json["hfu"] = m.hfu;
  json["breakdown_s"] = {{"compute", m.breakdown.compute_s},
                         {"exposed_communication", m.breakdown.exposed_communication_s},
                         {"data_stall", m.breakdown.data_stall_s},
                         {"pipeline_bubble", m.breakdown.pipeline_bubble_s},
                         {"other", m.breakdown.other_s}};
  if (result.scenario.engine.launches.any()) json["kernel_launch_wait_s"] = m.breakdown.launches_s;
  if (m.checkpoint) json["checkpoint_stall_s"] = m.breakdown.checkpoint_s;
  if (m.breakdown.process_s > 0) json["profiled_wait_s"] = m.breakdown.process_s;
  if (m.breakdown.slowed_s > 0) json["compute_slowed_by_collectives_s"] = m.breakdown.slowed_s;
  json["critical_path"] = path_json(result);
  if (result.remedies) json["remedies"] = remedies_json(*result.remedies);
  if (!result.slow.empty()) json["slow_parts"] = slow_json(result);
  json["memory_bytes"] = {{"weights", m.memory.weights},     {"gradients", m.memory.gradients},
                          {"optimizer", m.memory.optimizer}, {"activations", m.memory.activations},
                          {"buffers", m.memory.buffers},     {"total", m.memory.total},
                          {"capacity", m.memory.capacity},   {"fits", m.memory.fits}};
  const ReservedBytes reserved = reserved_bytes(*result.plan.schedule, result.plan.endpoints,
                                                *result.scenario.cluster, result.scenario.framework);
  json["memory_bytes"]["reserved"] = {{"context", reserved.context},
                                      {"communication", reserved.communication},
                                      {"workspaces", reserved.workspaces},
                                      {"driver", reserved.driver},
                                      {"most_communication", reserved.most_communication}};
  const AllocatorBytes allocator = allocator_bytes(
      m.memory.total + reserved.workspaces, recorded_bytes(*result.plan.schedule, result.scenario.framework),
      result.scenario.strategy.pipeline > 1, m.memory.capacity);
  json["memory_bytes"]["allocated"] = allocator.allocated;
  json["memory_bytes"]["allocator"] = {
      {"low", allocator.low}, {"expected", allocator.expected}, {"high", allocator.high}};
  if (result.tells_tensors) json["memory_bytes"]["peak"] = peak_tensors_json(result);
  if (const std::optional<HostMemoryUse>& host = m.host_memory) {
    json["host_memory_bytes"] = {{"node", host->fullest},        {"weights", host->weights},
                                 {"gradients", host->gradients}, {"optimizer", host->optimizer},
                                 {"buffers", host->buffers},     {"total", host->total}};
    json["host_memory_bytes"]["capacity"] = nullptr;  // null if the cluster does not say
    if (host->capacity > 0) json["host_memory_bytes"]["capacity"] = host->capacity;
    json["host_memory_bytes"]["fits"] = host->fits;
    json["host_memory_bytes"]["nvme"] = host->nvme;
  }
  json["network"]["bytes_per_step"] = m.network_bytes_per_step;
  json["network"]["busiest_link"] = nullptr;  // null if no link was used
  if (!m.busiest_link.empty()) {
    json["network"]["busiest_link"] = {{"name", m.busiest_link}, {"utilization", m.busiest_utilization}};
  }
  if (result.scenario.data.given) json["data"] = data_json(result);
  if (m.checkpoint) json["checkpoint"] = checkpoint_json(result);
  add_cost(json, result);
  json["asynchrony"] = to_json(m.asynchrony, result.scenario);
  json["engine"] = {{"fidelity", result.trace.engine.fidelity},
                    {"classes", result.trace.engine.classes},
                    {"events", result.trace.engine.events}};
  if (result.rounds)  // the others repeat a round of these
    json["engine"]["simulated_microbatches"] = result.rounds->microbatches;
  if (result.uncertainty) json["uncertainty"] = to_json(*result.uncertainty);
  const std::string& framework = result.scenario.framework.name;
  json["framework"] = framework.empty() ? "none" : framework;
  json["rests_on"] = to_json(rests_on(result.scenario, result.plan));
  json["notes"] = result.plan.notes;
  return json;
}

std::string json_text(const ordered_json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0x7F) {
      out += "\\u007f";
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

void write_json(const Result& result, std::ostream& out) {
  out << json_text(to_json(result), 2) << '\n';
}

}  // namespace rehearse
