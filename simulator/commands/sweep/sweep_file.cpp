// Reads sweep files.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/text/document.hpp"
#include "simulator/commands/sweep/sweep_points.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 4> kFileKeys = {"scenario", "set", "vary", "zip"};

// The leaves of a table. Their keys are joined by dots; quoted keys may contain dots themselves.
struct Leaf {
  std::string key;
  Place place;
  const TomlValue* value;
};
void collect_leaves(const TomlValue& table, const std::string& path, std::vector<Leaf>& leaves) {
  for (const TomlEntry& entry : *table.get<TomlValue::Table>()) {
    const std::string key = path.empty() ? entry.key : path + "." + entry.key;
    if (entry.value.get<TomlValue::Table>()) {
      collect_leaves(entry.value, key, leaves);
    } else {
      leaves.push_back({key, entry.place, &entry.value});
    }
  }
}

std::vector<Leaf> leaves_of(const TomlValue& value, const std::string& name) {
  if (!value.get<TomlValue::Table>())
    throw InputError(value.place, fmt::format("{} is {}; allowed: a table", name, describe(value)));
  std::vector<Leaf> leaves;
  collect_leaves(value, "", leaves);
  for (const Leaf& leaf : leaves) check_sweep_key(leaf.key, leaf.place);
  return leaves;
}

std::vector<SweepValue> values_of(const Leaf& leaf, const std::string& section) {
  if (const auto* text = leaf.value->get<std::string>()) return parse_sweep_values(*text, leaf.value->place);
  const auto* array = leaf.value->get<TomlValue::Array>();
  if (!array)
    throw InputError(leaf.value->place,
                     fmt::format("{}.{} is {}; allowed: a list of values, or a string such as \"1..64*2\"",
                                 section, leaf.key, describe(*leaf.value)));
  if (array->empty())
    throw InputError(leaf.value->place,
                     fmt::format("{}.{} is an empty list; allowed: one value or more", section, leaf.key));
  std::vector<SweepValue> values;
  for (const TomlValue& item : *array) values.push_back(sweep_value(item));
  return values;
}

SweepAxis read_zip(const TomlValue& table, const std::string& name) {
  SweepAxis axis;
  for (const Leaf& leaf : leaves_of(table, name)) {
    const std::vector<SweepValue> values = values_of(leaf, name);
    if (axis.keys.empty()) axis.values.resize(values.size());
    if (values.size() != axis.values.size())
      throw InputError(leaf.value->place,
                       fmt::format("{}.{} has {} values; allowed: {}, as many as {} has", name, leaf.key,
                                   values.size(), axis.values.size(), axis.keys.front()));
    axis.keys.push_back(leaf.key);
    axis.places.push_back(leaf.place);
    if (axis.keys.size() * values.size() > kMostSweepValues)
      throw InputError(leaf.place, fmt::format("{} has more than {} values", name, kMostSweepValues));
    for (std::size_t i = 0; i < values.size(); ++i) axis.values[i].push_back(values[i]);
  }
  if (axis.keys.empty())
    throw InputError(table.place, fmt::format("{} is empty; allowed: keys that vary together", name));
  return axis;
}

}  // namespace

bool is_sweep_file(std::string_view text) {
  try {
    const TomlValue root = parse_toml(text, "");
    return std::any_of(kFileKeys.begin(), kFileKeys.end(),
                       [&](std::string_view key) { return find_entry(root, key) != nullptr; });
  } catch (const InputError&) {
    return false;
  }
}

Sweep parse_sweep_file(std::string_view text, const std::string& path) {
  const TomlValue root = parse_toml(text, path);
  Sweep sweep;
  const std::vector<std::string> known(kFileKeys.begin(), kFileKeys.end());
  for (const TomlEntry& entry : *root.get<TomlValue::Table>()) {
    const TomlValue& value = entry.value;
    if (entry.key == "scenario") {
      const auto* name = value.get<std::string>();
      if (!name || name->empty())
        throw InputError(value.place, fmt::format("scenario is {}; allowed: the name of a scenario file, "
                                                  "relative to this file",
                                                  describe(value)));
      sweep.scenario_path = sweep_value(value).shown;
    } else if (entry.key == "set") {
      for (const Leaf& leaf : leaves_of(value, "set"))
        sweep.overrides.push_back(leaf.key + "=" + sweep_value(*leaf.value).toml);
    } else if (entry.key == "vary") {
      for (const Leaf& leaf : leaves_of(value, "vary")) {
        SweepAxis axis{{leaf.key}, {leaf.place}, {}};
        for (SweepValue& one : values_of(leaf, "vary")) axis.values.push_back({std::move(one)});
        sweep.axes.push_back(std::move(axis));
        check_sweep_size(sweep);
      }
    } else if (entry.key == "zip") {
      const auto* array = value.get<TomlValue::Array>();
      if (!array)
        throw InputError(value.place, fmt::format("zip is {}; allowed: tables [[zip]]", describe(value)));
      for (std::size_t i = 0; i < array->size(); ++i) {
        sweep.axes.push_back(read_zip((*array)[i], fmt::format("zip[{}]", i)));
        check_sweep_size(sweep);
      }
    } else {
      const std::string near = nearest_name(entry.key, known);
      throw InputError(entry.place, fmt::format("unknown key {}; {}", in_quotes(entry.key),
                                                near.empty() ? "allowed: scenario, set, vary, zip"
                                                             : fmt::format("did you mean \"{}\"?", near)));
    }
  }
  if (sweep.scenario_path.empty())
    throw InputError(root.place,
                     "scenario is missing; allowed: the name of a scenario file, relative to this file");
  check(sweep);
  return sweep;
}

}  // namespace rehearse
