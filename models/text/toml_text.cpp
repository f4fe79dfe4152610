#include "models/text/toml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse {

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

namespace {

std::string key_text(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? key : toml_string(key);
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

bool is_array_of_tables(const TomlValue& value) {
  const auto* array = value.get<TomlValue::Array>();
  return array != nullptr && !array->empty() &&
         std::all_of(array->begin(), array->end(),
                     [](const TomlValue& item) { return item.get<TomlValue::Table>() != nullptr; });
}

bool has_header(const TomlValue& value) {
  return value.get<TomlValue::Table>() != nullptr || is_array_of_tables(value);
}

void write_table(const TomlValue& table, const std::string& path, std::string& out) {
  const auto& entries = *table.get<TomlValue::Table>();
  for (const TomlEntry& entry : entries)
    if (!has_header(entry.value)) out += key_text(entry.key) + " = " + toml_value_text(entry.value) + '\n';
  for (const TomlEntry& entry : entries) {
    if (!has_header(entry.value)) continue;
    const std::string its_path = (path.empty() ? "" : path + ".") + key_text(entry.key);
    if (const auto* array = entry.value.get<TomlValue::Array>()) {
      for (const TomlValue& item : *array) {
        out += "[[" + its_path + "]]\n";
        write_table(item, its_path, out);
      }
      continue;
    }
    // A table that contains only tables needs no header.
    const auto& below = *entry.value.get<TomlValue::Table>();
    if (below.empty() ||
        std::any_of(below.begin(), below.end(), [](const TomlEntry& e) { return !has_header(e.value); }))
      out += "[" + its_path + "]\n";
    write_table(entry.value, its_path, out);
  }
}

}  // namespace

std::string toml_value_text(const TomlValue& value) {
  if (const auto* number = value.get<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get<double>()) return number_text(*number);
  if (const auto* truth = value.get<bool>()) return *truth ? "true" : "false";
  if (const auto* text = value.get<std::string>()) return toml_string(*text);
  if (const auto* date = value.get<TomlValue::Date>()) return date->text;
  std::string items;
  if (const auto* array = value.get<TomlValue::Array>()) {
    for (const TomlValue& item : *array) items += (items.empty() ? "" : ", ") + toml_value_text(item);
    return "[" + items + "]";
  }
  for (const TomlEntry& entry : *value.get<TomlValue::Table>())
    items += (items.empty() ? "" : ", ") + key_text(entry.key) + " = " + toml_value_text(entry.value);
  return "{" + items + "}";
}

std::string toml_text(const TomlValue& table) {
  std::string out;
  write_table(table, "", out);
  return out;
}

}  // namespace rehearse
