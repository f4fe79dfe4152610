// Defines a parsed TOML value with its position, as the document reader stores it in the order of the file.
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
  // TOML dates and times; stored only for the error message that rejects them.
  struct Date {
    std::string text;
  };
  // Deques, so that values keep their addresses when an override adds others.
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
  Place place;  // position of the key
  TomlValue value;
};

TomlValue* find(TomlValue& table, std::string_view key);  // nullptr if there is none
const TomlEntry* find_entry(const TomlValue& table, std::string_view key);

// Describes a value for an error: "a string \"abc\"", "-3", "NaN", "a table".
std::string describe(const TomlValue& value);
// Quotes a string, shortened and with non-printable characters escaped.
std::string in_quotes(std::string_view text);

// Returns the root table. Throws InputError with the position if the text is not UTF-8, nested too deeply, or
// not TOML.
TomlValue parse_toml(std::string_view text, const std::string& file_name);
// Parses the value after "--set key="; `place` becomes the position of the value and all its parts.
TomlValue parse_toml_value(std::string_view text, const Place& place);

}  // namespace rehearse
