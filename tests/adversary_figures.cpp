#include "tests/adversary_figures.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace rehearse::adversary {
namespace {

// Relative rounding error of sums of up to about 10^5 spans in double precision.
constexpr double kRounding = 1e-9;

// Keys that simulator/commands/README.md allows to be null. nlohmann also writes NaN and infinities as null.
const std::set<std::string> kNullable = {"capacity",
                                         "critical_path",
                                         "busiest_link",
                                         "asynchrony",
                                         "tokens_per_s",
                                         "step_time_s",
                                         "saved_s",
                                         "target",
                                         "tokens",
                                         "workers_samples_per_s",
                                         "storage_samples_per_s"};
// Keys that may be null if `cost_needs` says what is missing.
const std::set<std::string> kOfCost = {"cost_per_step", "energy_wh_per_step", "carbon_g_per_step",
                                       "cost",          "energy_kwh",         "carbon_kg"};

std::string null_figure(const nlohmann::json& value, const std::string& key, bool inside_path,
                        bool cost_known) {
  const bool nullable = kNullable.count(key) > 0 || (!cost_known && kOfCost.count(key) > 0);
  if (value.is_null() && (!nullable || (key == "step_time_s" && !inside_path)))
    return fmt::format("\"{}\" is null", key);
  for (const auto& [name, item] : value.items()) {
    if (!value.is_structured()) break;
    const std::string wrong =
        null_figure(item, value.is_object() ? name : key, inside_path || name == "critical_path", cost_known);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// Finds "nan" and "inf" in place of numbers, and percentages above 100.
std::string odd_word(const std::string& text) {
  std::istringstream words(text);
  std::string before;
  for (std::string word; words >> word; before = word) {
    std::string letters;
    for (const char c : word)
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) letters += static_cast<char>(std::tolower(c));
    if (letters == "nan" || letters == "inf") return fmt::format("the text has \"{}\"", word);
    if (word[0] != '%') continue;
    char* end = nullptr;
    const double share = std::strtod(before.c_str(), &end);
    if (end != before.c_str() && !(share <= 100 + 1e-9)) return fmt::format("the text has {} %", before);
  }
  return "";
}

}  // namespace

std::string json_of(const Prediction& prediction) {
  std::ostringstream out;
  write_json(prediction.result(), out);
  return out.str();
}

std::string text_of(const Prediction& prediction) {
  std::ostringstream out;
  write_text(prediction.result(), out);
  return out.str();
}

std::string unsound(const Prediction& p) {
  const Metrics& m = p.metrics;
  if (!(m.step_time_s >= 0) || !std::isfinite(m.step_time_s))
    return fmt::format("the step takes {} s", m.step_time_s);
  const double parts_s = m.breakdown.total_s();
  if (!(std::abs(parts_s - m.step_time_s) <= kRounding * m.step_time_s))
    return fmt::format("the parts add up to {} s, the step takes {} s", parts_s, m.step_time_s);
  for (const double part_s : {m.breakdown.compute_s, m.breakdown.exposed_communication_s,
                              m.breakdown.data_stall_s, m.breakdown.pipeline_bubble_s, m.breakdown.other_s})
    if (!(part_s >= -kRounding * m.step_time_s)) return fmt::format("a part of the step takes {} s", part_s);
  // MFU and HFU are model FLOPs divided by time, devices and the dense peak.
  if (!(m.mfu <= 1 + kRounding) || !(m.hfu <= 1 + kRounding))
    return fmt::format("{} of the peak is used, with recomputation {}", m.mfu, m.hfu);
  if (!(m.busiest_utilization <= 1 + kRounding))
    return fmt::format("{} is {} used", m.busiest_link, m.busiest_utilization);
  // Asynchronous runs are stopped: in their link_use, transfers in progress at the end count in full.
  if (!m.asynchrony) {
    for (const LinkUse& use : p.trace.link_use)
      if (!(use.bytes / p.scenario.cluster->bandwidth(use.link) <= p.trace.end_s * (1 + kRounding)))
        return fmt::format("{} carries {} bytes in {} s", p.scenario.cluster->link_name(use.link), use.bytes,
                           p.trace.end_s);
  }
  const nlohmann::json json = nlohmann::json::parse(json_of(p), nullptr, false);
  if (json.is_discarded()) return "the JSON does not parse";
  const std::string null = null_figure(json, "", false, !json.contains("cost_needs"));
  return null.empty() ? odd_word(text_of(p)) : null;
}

}  // namespace rehearse::adversary
