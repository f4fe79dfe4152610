// A parsed TOML value with its place: what the document reader keeps of a file, in the order of the file.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "models/text/error.hpp"

namespace rehearse {

struct TomlEntry;

struct TomlValue {
  // TOML's dates and times: kept only so that they can be named when they are refused.
  struct Date {
    std::string text;
  };
  // Deques, so that values stay where they are when an override adds others.
  using Array = std::deque<TomlValue>;
  using Table = std::deque<TomlEntry>;

  std::variant<std::int64_t, double, bool, std::string, Date, Array, Table> data;
  Place place;

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  template <typename T>
  T* get() {
    return std::get_if<T>(&data);
  }
};

struct TomlEntry {
  std::string key;
  Place place;  // of the key
  TomlValue value;
};

TomlValue* find(TomlValue& table, std::string_view key);  // nullptr if there is none
const TomlEntry* find_entry(const TomlValue& table, std::string_view key);

// "a string \"abc\"", "-3", "NaN", "a table": what an error says was found.
std::string describe(const TomlValue& value);
// A string in quotes, shortened and with what does not print escaped.
std::string in_quotes(std::string_view text);

// The root table. InputError with the place of what is wrong: not UTF-8, nested too deep, not TOML.
TomlValue parse_toml(std::string_view text, const std::string& file_name);
// The value behind "--set key="; `place` goes to it and all its parts.
TomlValue parse_toml_value(std::string_view text, const Place& place);

}  // namespace rehearse
