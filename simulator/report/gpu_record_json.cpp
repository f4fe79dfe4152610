#include "simulator/report/gpu_record_json.hpp"

#include <cmath>
#include <string_view>

namespace rehearse {
namespace {

using nlohmann::ordered_json;

constexpr double kMostBytes = 1e18, kMostFigure = 1e12;

constexpr std::array<std::pair<const char*, double GpuRecord::*>, 4> kMemory = {
    {{"allocated", &GpuRecord::allocated_bytes},
     {"predicted", &GpuRecord::predicted_bytes},
     {"used_before_communicators", &GpuRecord::used_before_communicators_bytes},
     {"used_after_communicators", &GpuRecord::used_after_communicators_bytes}}};

constexpr std::array<std::pair<const char*, double SampledFigure::*>, 3> kParts = {
    {{"mean", &SampledFigure::mean}, {"least", &SampledFigure::least}, {"most", &SampledFigure::most}}};

ordered_json to_json(const GpuStep& step) {
  ordered_json json;
  json["samples"] = step.samples;
  for (const auto& [name, figure] : kSampledFigures) {
    json[name] = nullptr;
    if (std::isnan((step.*figure).mean)) continue;
    for (const auto& [part, value] : kParts) json[name][part] = step.*figure.*value;
  }
  json["throttled_by"] = nullptr;
  if (step.throttled_by) json["throttled_by"] = *step.throttled_by;
  json["energy_j"] = nullptr;
  if (!std::isnan(step.energy_j)) json["energy_j"] = step.energy_j;
  return json;
}

ordered_json to_json(const ChosenCollective& c) {
  return {{"op", c.op},
          {"name", c.name},
          {"kind", c.kind},
          {"bytes", c.bytes},
          {"algorithm", c.algorithm},
          {"protocol", c.protocol},
          {"channels", c.channels},
          {"calls", c.calls}};
}

ChosenCollective read_collective(const JsonReader& json) {
  constexpr int kMany = 1'000'000'000;
  ChosenCollective c;
  c.op = static_cast<int>(json.at("op").integer(0, kMany));
  c.name = json.at("name").text();
  c.kind = json.at("kind").text();
  c.bytes = json.at("bytes").number(0, kMostBytes);
  c.algorithm = json.at("algorithm").text();
  c.protocol = json.at("protocol").text();
  c.channels = static_cast<int>(json.at("channels").integer(0, kMany));
  c.calls = json.at("calls").integer(0, INT64_MAX);
  return c;
}

GpuStep read_step(const JsonReader& json) {
  GpuStep step;
  step.samples = static_cast<int>(json.at("samples").integer(0, 1'000'000'000));
  for (const auto& [name, figure] : kSampledFigures) {
    const JsonReader told = json.at(name);
    if (told.value().is_null()) continue;
    for (const auto& [part, value] : kParts)
      step.*figure.*value = told.at(part).number(-kMostFigure, kMostFigure);
  }
  // Earlier records have no energy.
  if (json.has("energy_j") && !json.at("energy_j").value().is_null())
    step.energy_j = json.at("energy_j").number(0, kMostFigure);
  const JsonReader reasons = json.at("throttled_by");
  if (reasons.value().is_null()) return step;
  step.throttled_by.emplace();
  for (std::size_t i = 0; i < reasons.size(); ++i) step.throttled_by->push_back(reasons.item(i).text());
  return step;
}

}  // namespace

ordered_json to_json(const GpuRecord& record) {
  ordered_json json;
  json["uuid"] = record.uuid;
  json["pci_bus_id"] = record.pci_bus_id;
  json["driver"] = record.driver;
  for (const auto& [name, bytes] : kMemory) {
    json["memory_bytes"][name] = nullptr;
    if (record.*bytes > 0) json["memory_bytes"][name] = record.*bytes;
  }
  json["clocks_unknown"] = record.clocks_unknown;
  json["energy_basis"] = kEnergyBasisNames[static_cast<std::size_t>(record.energy_basis)];
  json["steps"] = ordered_json::array();
  for (const GpuStep& step : record.steps) json["steps"].push_back(to_json(step));
  for (const ChosenCollective& chosen : record.collectives) json["collectives"].push_back(to_json(chosen));
  return json;
}

GpuRecord read_gpu_record(const JsonReader& json) {
  GpuRecord record;
  record.uuid = json.at("uuid").text();
  record.pci_bus_id = json.at("pci_bus_id").text();
  record.driver = json.at("driver").text();
  const JsonReader memory = json.at("memory_bytes"), steps = json.at("steps");
  for (const auto& [name, bytes] : kMemory) {
    const JsonReader told = memory.at(name);
    if (!told.value().is_null()) record.*bytes = told.number(0, kMostBytes);
  }
  record.clocks_unknown = json.at("clocks_unknown").text();
  if (json.has("energy_basis"))
    record.energy_basis = static_cast<EnergyBasis>(json.at("energy_basis").choice(kEnergyBasisNames));
  for (std::size_t i = 0; i < steps.size(); ++i) record.steps.push_back(read_step(steps.item(i)));
  if (!json.has("collectives")) return record;
  const JsonReader collectives = json.at("collectives");
  for (std::size_t i = 0; i < collectives.size(); ++i)
    record.collectives.push_back(read_collective(collectives.item(i)));
  return record;
}

}  // namespace rehearse
