#include "gui/models/runs/run_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "simulator/report/json_reader.hpp"

namespace rehearse::gui {

namespace {

// Returns the texts of a list; what is anything else is left out.
std::vector<std::string> texts_in(const nlohmann::json& list) {
  std::vector<std::string> texts;
  for (const auto& text : list)
    if (text.is_string()) texts.push_back(text.get<std::string>());
  return texts;
}

std::optional<TriedRemedy> remedy_in(const nlohmann::json& json) {
  TriedRemedy remedy;
  const auto number = [&](const char* key, double& value) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return false;
    value = found->get<double>();
    return true;
  };
  if (!json.is_object() || !json.contains("sets") || !json["sets"].is_array() ||
      !number("step_time_s", remedy.step_time_s) || !number("samples_per_s", remedy.samples_per_s) ||
      !number("gain", remedy.gain) || !number("memory_bytes", remedy.memory_bytes))
    return std::nullopt;
  remedy.sets = texts_in(json["sets"]);
  if (json.contains("why") && json["why"].is_string()) remedy.why = json["why"].get<std::string>();
  return remedy.sets.empty() ? std::nullopt : std::optional(remedy);
}

}  // namespace

void facts_of(const Timeline& timeline, Run& run) {
  const auto other = json_object_in(timeline.other_data);
  if (other.contains("measured")) run.source = Run::Source::measured;
  const auto text = other.find("scenario_text");
  if (text != other.end() && text->is_string()) run.scenario_text = text->get<std::string>();
  const auto result = other.find("result");
  if (result == other.end() || !result->is_object()) return;
  if (const auto notes = result->find("notes"); notes != result->end() && notes->is_array())
    run.notes = texts_in(*notes);
  if (const auto remedies = result->find("remedies"); remedies != result->end() && remedies->is_array())
    for (const auto& one : *remedies)
      if (const auto remedy = remedy_in(one)) run.remedies.push_back(*remedy);
}

std::vector<std::string> nodes_of(const Timeline& timeline, const Judged& judged) {
  constexpr std::size_t kNamed = 3;
  const RecordedRun& run = judged.run;
  const Schedule& schedule = *run.plan.schedule;
  std::vector<std::string> nodes(timeline.processes.size());
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    // Processes are numbered from 1, in the order of the rank classes.
    const std::int64_t number = timeline.processes[p].pid - 1;
    if (number < 0 || number >= static_cast<std::int64_t>(run.trace.classes.size())) continue;
    const RankClass& who = run.trace.classes[static_cast<std::size_t>(number)];
    std::vector<std::string> names;  // distinct, in the order of the ranks
    std::set<std::string> known;
    for (const int rank : who.ranks) {
      const auto place = static_cast<std::size_t>(schedule.first_rank(who.role) + rank);
      std::string name = run.scenario.cluster->endpoint_name(run.plan.endpoints.at(place));
      name.resize(std::min(name.size(), name.find('.')));
      if (known.insert(name).second) names.push_back(std::move(name));
    }
    nodes[p] = names.size() <= kNamed ? fmt::format("{}", fmt::join(names, ", "))
                                      : fmt::format("{} nodes", names.size());
  }
  return nodes;
}

std::vector<double> capacities_of(const Timeline& timeline, const Judged& judged) {
  const RecordedRun& run = judged.run;
  const Cluster& cluster = *run.scenario.cluster;
  const Schedule& schedule = *run.plan.schedule;
  std::vector<double> capacities(timeline.counters.size(), 0);
  for (std::size_t c = 0; c < capacities.size(); ++c) {
    const Counter& counter = timeline.counters[c];
    if (counter.unit == "bytes_per_s") {
      const std::vector<LinkId> links = cluster.find_links(counter.name);
      if (!links.empty()) capacities[c] = cluster.bandwidth(links.front());
    }
    if (counter.unit != "bytes" || counter.process < 0) continue;
    // Processes are numbered from 1, in the order of the rank classes. A server on a host processor has no
    // device memory.
    const std::int64_t number = timeline.processes[static_cast<std::size_t>(counter.process)].pid - 1;
    if (number < 0 || number >= static_cast<std::int64_t>(run.trace.classes.size())) continue;
    const RankClass& who = run.trace.classes[static_cast<std::size_t>(number)];
    const auto place = static_cast<std::size_t>(schedule.first_rank(who.role) + who.ranks.front());
    if (run.plan.endpoints.at(place) < cluster.devices())
      capacities[c] = cluster.node().device.memory_bytes.value;
  }
  return capacities;
}

}  // namespace rehearse::gui
