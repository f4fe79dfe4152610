#include "simulator/commands/sweep/sweep_row.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "models/text/number_in.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/json_reader.hpp"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 13> kFigures = {"step_time_s",
                                                       "samples_per_s",
                                                       "tokens_per_s",
                                                       "devices",
                                                       "mfu",
                                                       "compute_s",
                                                       "exposed_communication_s",
                                                       "data_stall_s",
                                                       "pipeline_bubble_s",
                                                       "other_s",
                                                       "memory_bytes",
                                                       "fits",
                                                       "network_bytes_per_step"};
constexpr std::size_t kStepTime = 0, kSamples = 1, kFits = 11;

// Joins the lines of a message into one line, with single blanks.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == '\n' || c == '\r' || c == '\t';
    if (blank || c != ' ' || line.empty() || line.back() != ' ') line += blank ? ' ' : c;
    if (line.size() >= 2 && line.back() == ' ' && line[line.size() - 2] == ' ') line.pop_back();
  }
  return line;
}

ordered_json to_json(const TomlValue& value) {
  if (const auto* whole = value.get<std::int64_t>()) return *whole;
  if (const auto* number = value.get<double>()) return *number;
  if (const auto* boolean = value.get<bool>()) return *boolean;
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* date = value.get<TomlValue::Date>()) return date->text;
  if (const auto* array = value.get<TomlValue::Array>()) {
    ordered_json items = ordered_json::array();
    for (const TomlValue& item : *array) items.push_back(to_json(item));
    return items;
  }
  ordered_json table = ordered_json::object();
  for (const TomlEntry& entry : *value.get<TomlValue::Table>()) table[entry.key] = to_json(entry.value);
  return table;
}

// Returns the fields of one line of CSV (RFC 4180); empty if a quote is not closed.
std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"' && (quoted || fields.back().empty())) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return quoted ? std::vector<std::string>{} : fields;
}

std::string_view framework_in_row(const Scenario& scenario) {
  return scenario.framework.name.empty() ? "none" : std::string_view(scenario.framework.name);
}

PointStatus status_named(std::string_view name) {
  const auto found = std::find(kPointStatusNames.begin(), kPointStatusNames.end(), name);
  if (found == kPointStatusNames.end())
    throw std::invalid_argument("its status is " + in_quotes(name) + "; allowed: ok, refused, failed");
  return static_cast<PointStatus>(found - kPointStatusNames.begin());
}

[[noreturn]] void refuse_other_sweep() {
  throw std::invalid_argument(
      "it belongs to another sweep: the scenario, an override, a varied value or --strict is not the same");
}

}  // namespace

SweepRows::SweepRows(const Sweep& sweep, SweepFormat format)
    : sweep_(sweep), format_(format), hash_(sweep.hash()), keys_(sweep.keys()) {}

std::string SweepRows::header() const {
  if (format_ == SweepFormat::jsonl) return "";
  std::string names = "point";
  for (const std::string& key : keys_) names += "," + csv_field(key);
  for (const std::string_view figure : kFigures) names += fmt::format(",{}", figure);
  return names + ",framework,ignored,status,error,sweep\n";
}

std::int64_t SweepRows::most_lines() const {
  return sweep_.points() + (format_ == SweepFormat::csv ? 1 : 0);
}

std::string SweepRows::front() const {
  return format_ == SweepFormat::csv ? header() : fmt::format("{{\"sweep\":\"{}\",\"point\":", hash_);
}

std::string SweepRows::csv(std::int64_t point, const std::string& figures, PointStatus status,
                           const std::string& error) const {
  std::string line = fmt::format("{}", point);
  for (const SweepValue& value : sweep_.values(point)) line += "," + csv_field(value.shown);
  return fmt::format("{},{},{},{},{}\n", line, figures, kPointStatusNames[static_cast<std::size_t>(status)],
                     csv_field(error), hash_);
}

std::string SweepRows::line(std::int64_t point, const Result& result) const {
  const Metrics& m = result.metrics;
  if (format_ == SweepFormat::csv) {
    const Breakdown& b = m.breakdown;
    return csv(
        point,
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", m.step_time_s, m.samples_per_s,
                    m.tokens_per_s > 0 ? fmt::format("{}", m.tokens_per_s) : "", m.devices, m.mfu,
                    b.compute_s, b.exposed_communication_s, b.data_stall_s, b.pipeline_bubble_s, b.other_s,
                    m.memory.total, m.memory.fits ? "true" : "false", m.network_bytes_per_step,
                    framework_in_row(result.scenario), fmt::join(result.scenario.ignored, " ")),
        PointStatus::ok, "");
  }
  ordered_json json = {{"sweep", hash_}, {"point", point}, {"varied", ordered_json::object()}};
  const std::vector<SweepValue> values = sweep_.values(point);
  for (std::size_t i = 0; i < keys_.size(); ++i)
    json["varied"][keys_[i]] = to_json(parse_toml_value(values[i].toml, {}));
  if (!result.scenario.ignored.empty()) json["ignored"] = result.scenario.ignored;
  json["status"] = "ok";
  json["error"] = nullptr;
  json["result"] = rehearse::to_json(result);
  return json_text(json) + '\n';
}

std::string SweepRows::line(std::int64_t point, PointStatus status, const std::string& error) const {
  const std::string said = on_one_line(error);
  if (format_ == SweepFormat::csv) return csv(point, std::string(kFigures.size() + 1, ','), status, said);
  ordered_json json = {{"sweep", hash_}, {"point", point}, {"varied", ordered_json::object()}};
  const std::vector<SweepValue> values = sweep_.values(point);
  for (std::size_t i = 0; i < keys_.size(); ++i)
    json["varied"][keys_[i]] = to_json(parse_toml_value(values[i].toml, {}));
  json["status"] = kPointStatusNames[static_cast<std::size_t>(status)];
  json["error"] = said;
  json["result"] = nullptr;
  return json_text(json) + '\n';
}

SweepRow SweepRows::parse(std::string_view line) const {
  const SweepRow row = format_ == SweepFormat::csv ? parse_csv(line) : parse_json(line);
  if (row.point < 1 || row.point > sweep_.points())
    throw std::invalid_argument(fmt::format("its point is {}; allowed: 1 to {}", row.point, sweep_.points()));
  return row;
}

SweepRow SweepRows::parse_csv(std::string_view line) const {
  const std::vector<std::string> fields = csv_fields(line);
  const std::size_t figures = 1 + keys_.size(), framework = figures + kFigures.size(),
                    ignored = framework + 1, status = ignored + 1;
  if (fields.size() != status + 3)
    throw std::invalid_argument(fmt::format("it has {} fields; allowed: {}", fields.size(), status + 3));
  if (fields[status + 2] != hash_) refuse_other_sweep();
  SweepRow row;
  const auto point = number_in<std::int64_t>(fields[0]);
  if (!point) throw std::invalid_argument("its point is " + in_quotes(fields[0]) + "; allowed: a number");
  row.point = *point;
  row.status = status_named(fields[status]);
  row.error = fields[status + 1];
  std::istringstream keys(fields[ignored]);
  for (std::string key; keys >> key;) row.ignored.push_back(key);
  if (row.status != PointStatus::ok) return row;
  const auto step = number_in<double>(fields[figures + kStepTime]),
             samples = number_in<double>(fields[figures + kSamples]);
  if (!step || !samples) throw std::invalid_argument("its step_time_s or samples_per_s is not a number");
  row.step_time_s = *step;
  row.samples_per_s = *samples;
  row.framework = fields[framework];
  row.fits = fields[figures + kFits] == "true";
  return row;
}

SweepRow SweepRows::parse_json(std::string_view line) const {
  try {
    const nlohmann::json json = json_in_line(line);
    if (!json.is_object() || !json.contains("sweep"))
      throw std::invalid_argument("it is not a result of a sweep");
    if (json["sweep"] != hash_) refuse_other_sweep();
    SweepRow row;
    row.point = json.at("point").get<std::int64_t>();
    row.status = status_named(json.at("status").get<std::string>());
    if (row.status != PointStatus::ok) {
      row.error = json.at("error").get<std::string>();
      return row;
    }
    if (json.contains("ignored")) row.ignored = json["ignored"].get<std::vector<std::string>>();
    row.step_time_s = json.at("result").at("step_time_s").get<double>();
    row.samples_per_s = json.at("result").at("samples_per_s").get<double>();
    row.framework = json.at("result").at("framework").get<std::string>();
    row.fits = json.at("result").at("memory_bytes").at("fits").get<bool>();
    return row;
  } catch (const nlohmann::json::exception&) {
    throw std::invalid_argument("it is not a result of a sweep");
  }
}

}  // namespace rehearse
