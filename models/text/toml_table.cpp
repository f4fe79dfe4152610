#include "models/text/toml_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace rehearse {
namespace {

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : fmt::format("{}.{}", path, key);
}

// Returns an integer or floating-point number.
std::optional<double> number_of(const TomlValue& value) {
  if (const auto* integer = value.get<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* floating = value.get<double>()) return *floating;
  return std::nullopt;
}

void add_changed(const TomlValue& table, const TomlValue& defaults, const std::string& path,
                 std::vector<std::string>& changed) {
  for (const TomlEntry& entry : *table.get<TomlValue::Table>()) {
    const TomlEntry* other = find_entry(defaults, entry.key);
    if (other && entry.value.get<TomlValue::Table>() && other->value.get<TomlValue::Table>())
      add_changed(entry.value, other->value, joined(path, entry.key), changed);
    else if (!other || !same_value(entry.value, other->value))
      changed.push_back(joined(path, entry.key));
  }
}

}  // namespace

TomlValue toml_table(const Place& place) {
  TomlValue table;
  table.data = TomlValue::Table{};
  table.place = place;
  return table;
}

TomlValue toml_value(std::variant<std::int64_t, double, bool, std::string> data, const Place& place) {
  TomlValue value;
  std::visit([&](auto& held) { value.data = std::move(held); }, data);
  value.place = place;
  return value;
}

void put(TomlValue& table, std::string_view key, TomlValue value) {
  if (TomlValue* present = find(table, key)) {
    *present = std::move(value);
    return;
  }
  Place place = value.place;
  table.get<TomlValue::Table>()->push_back({std::string(key), std::move(place), std::move(value)});
}

void erase_key(TomlValue& table, std::string_view key) {
  auto& entries = *table.get<TomlValue::Table>();
  const auto entry =
      std::find_if(entries.begin(), entries.end(), [&](const TomlEntry& e) { return e.key == key; });
  if (entry != entries.end()) entries.erase(entry);
}

void erase_path(TomlValue& root, std::string_view path) {
  TomlValue* table = &root;
  for (std::size_t dot; table && (dot = path.find('.')) != std::string_view::npos;
       path.remove_prefix(dot + 1))
    table = find_table(*table, path.substr(0, dot));
  if (table) erase_key(*table, path);
}

TomlValue* find_table(TomlValue& table, std::string_view key) {
  TomlValue* value = find(table, key);
  return value && value->get<TomlValue::Table>() ? value : nullptr;
}

const TomlValue* find_table(const TomlValue& table, std::string_view key) {
  const TomlEntry* entry = find_entry(table, key);
  return entry && entry->value.get<TomlValue::Table>() ? &entry->value : nullptr;
}

bool same_value(const TomlValue& a, const TomlValue& b) {
  const std::optional<double> number = number_of(a), other_number = number_of(b);
  if (number || other_number) return number == other_number;
  if (a.data.index() != b.data.index()) return false;
  if (const auto* truth = a.get<bool>()) return *truth == *b.get<bool>();
  if (const auto* text = a.get<std::string>()) return *text == *b.get<std::string>();
  if (const auto* date = a.get<TomlValue::Date>()) return date->text == b.get<TomlValue::Date>()->text;
  if (const auto* array = a.get<TomlValue::Array>()) {
    const auto& other = *b.get<TomlValue::Array>();
    return std::equal(array->begin(), array->end(), other.begin(), other.end(), same_value);
  }
  const auto& entries = *a.get<TomlValue::Table>();
  return entries.size() == b.get<TomlValue::Table>()->size() &&
         std::all_of(entries.begin(), entries.end(), [&](const TomlEntry& entry) {
           const TomlEntry* other = find_entry(b, entry.key);
           return other && same_value(entry.value, other->value);
         });
}

std::vector<std::string> fill_in(TomlValue& table, const TomlValue& defaults, const std::string& path) {
  std::vector<std::string> kept;
  for (const TomlEntry& entry : *defaults.get<TomlValue::Table>()) {
    TomlValue* present = find(table, entry.key);
    if (!present) {
      table.get<TomlValue::Table>()->push_back(entry);
    } else if (present->get<TomlValue::Table>() && entry.value.get<TomlValue::Table>()) {
      const auto below = fill_in(*present, entry.value, joined(path, entry.key));
      kept.insert(kept.end(), below.begin(), below.end());
    } else if (!same_value(*present, entry.value)) {
      kept.push_back(joined(path, entry.key));
    }
  }
  return kept;
}

std::vector<std::string> changed_keys(const TomlValue& table, const TomlValue& defaults) {
  std::vector<std::string> changed;
  add_changed(table, defaults, "", changed);
  return changed;
}

std::string but_for(const std::vector<std::string>& keys) {
  return keys.empty() ? "" : fmt::format(", but for {}", fmt::join(keys, ", "));
}

std::string changed_by_scenario(const std::vector<std::string>& keys) {
  return fmt::format("changed by the scenario: {}", fmt::join(keys, ", "));
}

}  // namespace rehearse
