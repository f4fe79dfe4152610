#include "simulator/report/json.hpp"

#include <ostream>

namespace rehearse {

using nlohmann::ordered_json;

namespace {

ordered_json to_json(const std::vector<Input>& inputs) {
  ordered_json json;
  for (const char* basis : {"measured", "published", "guessed"}) json[basis] = ordered_json::array();
  for (const Input& input : inputs) {
    ordered_json& list = json[input.basis == Basis::measured    ? "measured"
                              : input.basis == Basis::published ? "published"
                                                                : "guessed"];
    const std::string name = input.name + " of " + input.of;
    list.push_back(input.source.empty() ? name : name + ": " + input.source);
  }
  return json;
}

}  // namespace

ordered_json to_json(const Result& result) {
  const Metrics& m = result.metrics;
  ordered_json json;
  json["scenario"] = result.scenario.name;
  json["step_time_s"] = m.step_time_s;
  json["samples_per_s"] = m.samples_per_s;
  json["tokens_per_s"] = m.tokens_per_s;
  json["devices"] = m.devices;
  json["model_tflops_per_device"] = m.model_tflops_per_device;
  json["mfu"] = m.mfu;
  json["hfu"] = m.hfu;
  json["breakdown_s"] = {{"compute", m.breakdown.compute_s},
                         {"exposed_communication", m.breakdown.exposed_communication_s},
                         {"data_stall", m.breakdown.data_stall_s},
                         {"pipeline_bubble", m.breakdown.pipeline_bubble_s},
                         {"other", m.breakdown.other_s}};
  json["memory_bytes"] = {{"weights", m.memory.weights},     {"gradients", m.memory.gradients},
                          {"optimizer", m.memory.optimizer}, {"activations", m.memory.activations},
                          {"buffers", m.memory.buffers},     {"total", m.memory.total},
                          {"capacity", m.memory.capacity},   {"fits", m.memory.fits}};
  json["network"]["bytes_per_step"] = m.network_bytes_per_step;
  json["network"]["busiest_link"] = nullptr;  // no link was used
  if (!m.busiest_link.empty()) {
    json["network"]["busiest_link"] = {{"name", m.busiest_link}, {"utilization", m.busiest_utilization}};
  }
  json["engine"] = {{"fidelity", result.trace.engine.fidelity},
                    {"classes", result.trace.engine.classes},
                    {"events", result.trace.engine.events}};
  json["rests_on"] = to_json(rests_on(result.scenario, result.plan));
  json["notes"] = result.plan.notes;
  return json;
}

void write_json(const Result& result, std::ostream& out) {
  out << to_json(result).dump(2) << '\n';
}

}  // namespace rehearse
