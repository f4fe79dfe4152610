#include "simulator/jobs/job_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/text/printable.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kMostNamed = 12;  // settings in a note
constexpr std::size_t kMostSettings = 20'000;
constexpr int kDeepest = 40;

using Json = nlohmann::ordered_json;

void add_setting(JobSettings& settings, std::string name, std::string value, Place place) {
  if (settings.size() >= kMostSettings)
    throw InputError(place, fmt::format("there are more than {} settings", kMostSettings));
  settings.push_back({std::move(name), std::move(value), std::move(place)});
}

std::string under(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Returns a scalar without quotes, or an array's scalars joined by commas.
std::string plain_text(const TomlValue& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* array = value.get<TomlValue::Array>()) {
    std::vector<std::string> all;
    bool nested = false;
    for (const TomlValue& one : *array) {
      nested = nested || one.get<TomlValue::Array>();
      all.push_back(plain_text(one));
    }
    return fmt::format("{}", fmt::join(all, nested ? ";" : ","));
  }
  return value.get<TomlValue::Table>() ? "" : toml_value_text(value);
}

void add_table(const TomlValue& table, const std::string& path, JobSettings& settings) {
  for (const TomlEntry& entry : *table.get<TomlValue::Table>()) {
    const std::string name = under(path, entry.key);
    if (entry.value.get<TomlValue::Table>())
      add_table(entry.value, name, settings);
    else
      add_setting(settings, name, plain_text(entry.value), entry.place);
  }
}

std::string json_plain(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_null()) return "null";
  if (json.is_array()) {
    std::vector<std::string> all;
    for (const Json& one : json)
      if (!one.is_structured()) all.push_back(json_plain(one));
    return fmt::format("{}", fmt::join(all, ","));
  }
  return json.is_object() ? "" : json.dump();
}

class JsonFlattener {
public:
  JsonFlattener(std::string_view text, const std::string& path) : text_(text), file_(path) {}

  void add(const Json& json, const std::string& path, std::size_t from, int depth,
           JobSettings& settings) const {
    if (depth > kDeepest) throw InputError({file_}, "is nested too deeply");
    for (const auto& [key, value] : json.items()) {
      const std::size_t found = text_.find("\"" + key + "\"", from);
      const std::size_t at = found == std::string_view::npos ? from : found;
      const auto line =
          static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<long>(at), '\n')) + 1;
      const std::string name = under(path, key);
      if (value.is_object() && !value.empty())
        add(value, name, at, depth + 1, settings);
      else
        add_setting(settings, name, json_plain(value), {file_, line, 1});
    }
  }

private:
  std::string_view text_;
  std::string file_;
};

std::optional<double> number_of(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_' && c != ',') digits += c;
  double number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || stop != digits.data() + digits.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::string lower(std::string_view text) {
  std::string copy(text);
  for (char& c : copy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return copy;
}

std::string names_in(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

JobSettings toml_settings(const TomlValue& root) {
  JobSettings settings;
  add_table(root, "", settings);
  return settings;
}

JobSettings json_settings(std::string_view text, const std::string& path) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min(error.byte, text.size());
    const auto line =
        static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')) + 1;
    throw InputError({path, line, 1}, "is not valid JSON here");
  } catch (const Json::exception&) {
    throw InputError({path}, "holds a number or text that JSON does not allow");
  }
  JobSettings settings;
  if (json.is_object()) JsonFlattener(text, path).add(json, "", 0, 0, settings);
  return settings;
}

bool is_off(std::string_view value) {
  const std::string word = lower(value);
  constexpr std::string_view kOff[] = {"", "false", "no", "none", "0", "null", "~", "off"};
  return std::find(std::begin(kOff), std::end(kOff), word) != std::end(kOff);
}

const JobSetting* JobDraft::find(std::string_view name) const {
  const auto found = std::find_if(settings_.rbegin(), settings_.rend(),
                                  [&](const JobSetting& one) { return one.name == name; });
  if (found == settings_.rend()) return nullptr;
  const std::string value = lower(found->value);
  return value.empty() || value == "null" || found->value == "None" || value == "~" ? nullptr : &*found;
}

bool JobDraft::on(std::string_view name, bool fallback) const {
  const JobSetting* setting = find(name);
  return setting ? !is_off(setting->value) : fallback;
}

std::string JobDraft::text(std::string_view name, std::string_view fallback) const {
  const JobSetting* setting = find(name);
  return setting ? setting->value : std::string(fallback);
}

double JobDraft::number(std::string_view name, double fallback, double least) const {
  const JobSetting* setting = find(name);
  // "true" stands for a value that the script leaves to a variable.
  if (!setting || lower(setting->value) == "auto" || setting->value == "true") return fallback;
  const std::optional<double> number = number_of(setting->value);
  if (!number || *number < least || *number > 1e18)
    refuse(*setting, fmt::format("a number from {} on", least));
  return *number;
}

void JobDraft::refuse(const JobSetting& setting, const std::string& allowed) const {
  throw InputError(setting.place, fmt::format("{}{} is {}; allowed: {}", prefix_, setting.name,
                                              in_quotes(printable(setting.value.substr(0, 60))), allowed));
}

void JobDraft::set_toml(std::string_view key, std::string value, std::string_view from) {
  JobKey entry{std::string(key), std::move(value), {job_.path}, ""};
  if (const JobSetting* setting = find(from)) {
    entry.place = setting->place;
    entry.origin = printable(fmt::format("{}{}", prefix_, setting->name));
    if (setting->value.size() <= 40 && (setting->value != "true" || prefix_.empty()))
      entry.origin += printable((prefix_.empty() ? " = " : " ") + setting->value);
    if (entry.place.line == 0 && entry.place.file.empty()) entry.place.file = job_.path;
  }
  const auto same =
      std::find_if(job_.keys.begin(), job_.keys.end(), [&](const JobKey& one) { return one.key == key; });
  if (same != job_.keys.end())
    *same = std::move(entry);
  else
    job_.keys.push_back(std::move(entry));
}

void JobDraft::set(std::string_view key, double value, std::string_view from) {
  set_toml(key,
           value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{}", value),
           from);
}

void JobDraft::set(std::string_view key, bool value, std::string_view from) {
  set_toml(key, value ? "true" : "false", from);
}

void JobDraft::set_text(std::string_view key, std::string_view value, std::string_view from) {
  set_toml(key, toml_string(std::string(value)), from);
}

void JobDraft::ask(std::string key, std::string why, std::string options) {
  job_.questions.push_back({std::move(key), std::move(why), std::move(options)});
}

void JobDraft::translate() {
  for (const JobName& row : names_) {
    const JobSetting* setting = row.key.empty() ? nullptr : find(row.name);
    if (!setting) continue;
    if (row.use == JobUse::number) {
      if (lower(setting->value) == "auto") continue;
      set(row.key, number(row.name, 0), row.name);
    } else if (row.use == JobUse::flag) {
      if (!is_off(setting->value)) set(row.key, true, row.name);
    } else if (row.use == JobUse::text) {
      const std::string_view value = value_of_word(row.words, setting->value);
      if (value.empty()) {
        std::vector<std::string> allowed;
        for (const JobWord& one : row.words) allowed.push_back(in_quotes(one.word));
        refuse(*setting, fmt::format("{}", fmt::join(allowed, ", ")));
      }
      set_text(row.key, value, row.name);
    }
  }
}

void JobDraft::report() {
  std::vector<std::string> unknown, unmodelled;
  int ignored = 0;
  const auto add = [&](std::vector<std::string>& list, const JobSetting& setting) {
    std::string name = printable(prefix_ + setting.name.substr(0, 80));
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
  };
  for (const JobSetting& setting : settings_) {
    const JobName* row = find_job_name(names_, setting.name);
    // A row may stand for a whole table of settings: "checkpoint", "metrics".
    for (std::size_t dot = setting.name.find('.'); !row && dot != std::string::npos;
         dot = setting.name.find('.', dot + 1)) {
      row = find_job_name(names_, std::string_view(setting.name).substr(0, dot));
      if (row && row->use != JobUse::ignored && row->use != JobUse::unmodelled) row = nullptr;
    }
    if (!row) {
      if (!is_off(setting.value)) add(unknown, setting);
    } else if (row->use == JobUse::unmodelled) {
      if (!is_off(setting.value)) add(unmodelled, setting);
    } else if (row->use == JobUse::ignored) {
      ++ignored;
    }
  }
  if (!unmodelled.empty())
    note(fmt::format("Left out, though the step time can depend on {}: {}.",
                     unmodelled.size() > 1 ? "them" : "it", names_in(unmodelled)));
  if (!unknown.empty()) note(fmt::format("Not known, and left out: {}.", names_in(unknown)));
  if (ignored > 0)
    note(
        fmt::format("{} other setting{} not change the step time.", ignored, ignored > 1 ? "s do" : " does"));
}

}  // namespace rehearse
