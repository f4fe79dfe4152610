#include "simulator/report/measurement_json.hpp"

#include <limits>

#include "simulator/report/gpu_record_json.hpp"

namespace rehearse {

using nlohmann::ordered_json;

ordered_json to_json(const Measurement& m) {
  ordered_json json = {{"executor", m.executor}, {"transport", m.transport}};
  json["compute"] = kRunComputeNames[static_cast<std::size_t>(m.compute)];
  json["hosts"] = m.hosts;
  json["processor"] = m.processor;
  json["cores"] = m.cores;
  json["gpu"] = m.gpu;
  json["gpus"] = m.gpus;
  json["versions"] = ordered_json::object();
  for (const auto& [name, version] : m.versions) json["versions"][name] = version;
  json["date"] = m.date;
  json["command"] = m.command;
  json["warmup_steps"] = m.warmup_steps;
  json["losses"] = m.losses;  // values that are not finite are written as null
  json["gradients_identical"] = nullptr;
  if (m.gradients_identical) json["gradients_identical"] = *m.gradients_identical;
  json["notes"] = m.notes;
  for (const GpuRecord& rank : m.gpu_ranks) json["gpu_ranks"].push_back(to_json(rank));
  if (m.ended_early)
    json["ended_early"] = {{"finished_steps", m.ended_early->finished_steps},
                           {"steps", m.ended_early->steps},
                           {"cause", m.ended_early->cause}};
  return json;
}

ordered_json to_json(const StepTimes& times) {
  return {{"steps", times.seconds.size()},
          {"median_s", times.median_s},
          {"least_s", times.least_s},
          {"lower_quartile_s", times.lower_quartile_s},
          {"upper_quartile_s", times.upper_quartile_s},
          {"most_s", times.most_s}};
}

Measurement read_measurement(const JsonReader& json) {
  constexpr int kMany = 1'000'000'000;
  const auto whole = [&](const char* key) { return static_cast<int>(json.at(key).integer(0, kMany)); };
  Measurement m;
  m.executor = json.at("executor").text();
  m.transport = json.at("transport").text();
  m.compute = static_cast<RealRun::Compute>(json.at("compute").choice(kRunComputeNames));
  m.hosts = whole("hosts");
  m.processor = json.at("processor").text();
  m.cores = whole("cores");
  m.gpu = json.at("gpu").text();
  m.gpus = whole("gpus");
  const JsonReader versions = json.at("versions");
  versions.object();
  for (const auto& item : versions.value().items())
    m.versions[item.key()] = versions.at(item.key().c_str()).text();
  m.date = json.at("date").text();
  m.command = json.at("command").text();
  m.warmup_steps = whole("warmup_steps");
  const JsonReader losses = json.at("losses"), notes = json.at("notes"),
                   identical = json.at("gradients_identical");
  constexpr double kLargest = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < losses.size(); ++i)
    m.losses.push_back(losses.item(i).value().is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                        : losses.item(i).number(-kLargest, kLargest));
  if (!identical.value().is_null()) m.gradients_identical = identical.boolean();
  for (std::size_t i = 0; i < notes.size(); ++i) m.notes.push_back(notes.item(i).text());
  if (json.has("gpu_ranks")) {
    const JsonReader ranks = json.at("gpu_ranks");
    for (std::size_t i = 0; i < ranks.size(); ++i) m.gpu_ranks.push_back(read_gpu_record(ranks.item(i)));
  }
  if (json.has("ended_early")) {
    const JsonReader early = json.at("ended_early"), steps = early.at("steps");
    m.ended_early.emplace();
    m.ended_early->steps = static_cast<int>(steps.integer(1, kMany));
    m.ended_early->finished_steps =
        static_cast<int>(early.at("finished_steps").integer(1, m.ended_early->steps));
    m.ended_early->cause = early.at("cause").text();
  }
  return m;
}

}  // namespace rehearse
