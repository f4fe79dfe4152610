// Describes the changes of a scenario that were simulated.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "simulator/report/format.hpp"
#include "simulator/report/remedies.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kMostTold = 2;  // so that an answer fits on one screen

}  // namespace

const TriedRemedy* remedy_with(const TriedRemedies& remedies, const std::vector<std::string>& sets) {
  const auto found = std::find_if(remedies.begin(), remedies.end(),
                                  [&](const TriedRemedy& remedy) { return remedy.sets == sets; });
  return found == remedies.end() ? nullptr : &*found;
}

std::string remedies_sentence(const Result& result, const std::string& bottleneck) {
  if (!result.remedies) return "";
  std::string text;
  std::vector<std::vector<std::string>> told;
  for (const TriedRemedy& remedy : *result.remedies) {
    if (told.size() == kMostTold) break;
    const std::string sets = fmt::format("--set {}", fmt::join(remedy.sets, " --set "));
    if (bottleneck.find("(try " + sets + ":") != std::string::npos) {
      told.push_back(remedy.sets);
      continue;
    }
    // A part of a change that was told says nothing new.
    const bool known = std::any_of(told.begin(), told.end(), [&](const std::vector<std::string>& all) {
      return std::all_of(remedy.sets.begin(), remedy.sets.end(), [&](const std::string& set) {
        return std::find(all.begin(), all.end(), set) != all.end();
      });
    });
    if (known) continue;
    text += fmt::format("{} {} ({}{})", text.empty() ? "Worth trying:" : ",", sets, in_percent(remedy.gain),
                        text.empty() ? " less time per sample" : "");
    told.push_back(remedy.sets);
  }
  return text.empty() ? "" : text + ".";
}

nlohmann::ordered_json remedies_json(const TriedRemedies& remedies) {
  auto json = nlohmann::ordered_json::array();
  for (const TriedRemedy& remedy : remedies)
    json.push_back({{"sets", remedy.sets},
                    {"why", remedy.why},
                    {"step_time_s", remedy.step_time_s},
                    {"samples_per_s", remedy.samples_per_s},
                    {"gain", remedy.gain},
                    {"memory_bytes", remedy.memory_bytes}});
  return json;
}

}  // namespace rehearse
