#include "models/text/toml_value.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <vector>

#include "models/text/printable.hpp"

namespace rehearse {
namespace {

// Deeper than any scenario needs, and far less than would exhaust the stack.
constexpr int kMaxNesting = 32;
// toml++ searches all tables made by dotted keys and headers, so its time grows quadratically with their
// number.
constexpr int kMaxDottedKeys = 10'000;

struct Position {
  int line = 1, column = 1;
};

void check_utf8(std::string_view text, const std::string& file_name) {
  Position at;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      throw InputError({file_name, at.line, at.column},
                       fmt::format("the byte 0x{:02X} is not UTF-8; allowed: text in UTF-8",
                                   static_cast<unsigned char>(text[i])));
    }
    if (text[i] == '\n') {
      at = {at.line + 1, 1};
    } else {
      ++at.column;
    }
    i += length;
  }
}

// Returns the position after a string that begins at `i`. An unterminated string ends with its line (or the
// text); the parser reports it in more detail.
std::size_t skip_string(std::string_view text, std::size_t i) {
  char quote = text[i];
  bool escapes = quote == '"';
  bool multi_line = i + 2 < text.size() && text[i + 1] == quote && text[i + 2] == quote;
  i += multi_line ? 3 : 1;
  for (; i < text.size(); ++i) {
    if (escapes && text[i] == '\\') {
      ++i;
    } else if (!multi_line) {
      if (text[i] == quote || text[i] == '\n') return i + 1;
    } else if (text.substr(i, 3) == std::string_view("\"\"\"'''", 6).substr(escapes ? 0 : 3, 3)) {
      return i + 3;
    }
  }
  return text.size();
}

// Nested brackets and long dotted keys cause recursion in the parser and in the destructor of its tables.
void check_nesting(std::string_view text, const std::string& file_name) {
  int open = 0, dots = 0, dotted_keys = 0;
  auto refuse = [&](std::size_t i, const std::string& message) {
    Position at;
    for (char c : text.substr(0, i)) {
      if (c == '\n') {
        at = {at.line + 1, 1};
      } else if ((c & 0xC0) != 0x80) {  // columns count characters
        ++at.column;
      }
    }
    throw InputError({file_name, at.line, at.column}, message);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      dots = 0;
    } else if (c == '"' || c == '\'') {
      i = skip_string(text, i) - 1;
    } else if (c == '[' || c == '{') {
      if (++open > kMaxNesting) {
        refuse(i, fmt::format("brackets are nested more than {0} deep; allowed: at most {0}", kMaxNesting));
      }
      dots = 0;
    } else if (c == ']' || c == '}') {
      open = std::max(0, open - 1);
      dots = 0;
    } else if (c == '.') {
      if (++dots > kMaxNesting) {
        refuse(i, fmt::format("a key has more than {0} dots; allowed: at most {0}", kMaxNesting));
      }
      // A dot in a number counts towards `dots` as well; one after a digit does not count as a dotted key.
      bool in_key = i > 0 && (text[i - 1] < '0' || text[i - 1] > '9');
      if (in_key && ++dotted_keys > kMaxDottedKeys) {
        refuse(i, fmt::format("there are more than {0} dotted keys; allowed: at most {0}", kMaxDottedKeys));
      }
    } else if (c == ',' || c == '=' || c == '\n') {
      dots = 0;
    }
  }
}

Place place_of(const toml::source_region& region, const std::string& file_name, const Place* fixed) {
  if (fixed) return *fixed;
  return {file_name, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

TomlValue convert(const toml::node& node, const std::string& file_name, const Place* fixed) {
  TomlValue value;
  value.place = place_of(node.source(), file_name, fixed);
  if (auto* integer = node.as_integer()) {
    value.data = integer->get();
  } else if (auto* number = node.as_floating_point()) {
    value.data = number->get();
  } else if (auto* boolean = node.as_boolean()) {
    value.data = boolean->get();
  } else if (auto* text = node.as_string()) {
    value.data = text->get();
  } else if (auto* array = node.as_array()) {
    TomlValue::Array items;
    for (const auto& item : *array) items.push_back(convert(item, file_name, fixed));
    value.data = std::move(items);
  } else if (auto* table = node.as_table()) {
    std::vector<TomlEntry> entries;
    for (const auto& [key, item] : *table) {
      entries.push_back({std::string(key.str()), place_of(key.source(), file_name, fixed),
                         convert(item, file_name, fixed)});
    }
    // toml++ sorts by name; sorting by position restores the order of the file.
    std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    value.data =
        TomlValue::Table(std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
  } else {
    std::ostringstream text_of_date;
    text_of_date.imbue(std::locale::classic());
    if (auto* date = node.as_date()) {
      text_of_date << date->get();
    } else if (auto* time = node.as_time()) {
      text_of_date << time->get();
    } else if (auto* both = node.as_date_time()) {
      text_of_date << both->get();
    }
    value.data = TomlValue::Date{text_of_date.str()};
  }
  return value;
}

}  // namespace

TomlValue* find(TomlValue& table, std::string_view key) {
  auto* entries = table.get<TomlValue::Table>();
  if (!entries) return nullptr;
  for (auto& entry : *entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const TomlEntry* find_entry(const TomlValue& table, std::string_view key) {
  const auto* entries = table.get<TomlValue::Table>();
  if (!entries) return nullptr;
  for (const auto& entry : *entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out = "\"";
  std::size_t i = 0;
  while (i < text.size() && i < kShown) {
    std::size_t length = utf8_length(text.substr(i));
    if (text[i] == '"' || text[i] == '\\') out += '\\';
    out += printable(text.substr(i, std::max<std::size_t>(1, length)));
    i += std::max<std::size_t>(1, length);
  }
  return out + (i < text.size() ? "...\"" : "\"");
}

std::string describe(const TomlValue& value) {
  if (auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
  if (auto* number = value.get<double>()) {
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number > 0 ? "infinity" : "-infinity";
    std::string text = fmt::format("{}", *number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (auto* boolean = value.get<bool>()) return *boolean ? "a boolean true" : "a boolean false";
  if (auto* text = value.get<std::string>()) return "a string " + in_quotes(*text);
  if (auto* date = value.get<TomlValue::Date>()) return "a date or time " + date->text;
  if (auto* array = value.get<TomlValue::Array>()) {
    if (array->empty()) return "an empty array";
    return array->size() == 1 ? "an array of 1 element"
                              : fmt::format("an array of {} elements", array->size());
  }
  return "a table";
}

TomlValue parse_toml(std::string_view text, const std::string& file_name) {
  check_utf8(text, file_name);
  check_nesting(text, file_name);
  try {
    toml::table table = toml::parse(text, std::string_view(file_name));
    TomlValue root = convert(table, file_name, nullptr);
    root.place = {file_name, 0, 0};
    return root;
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    throw InputError({file_name, static_cast<int>(at.line), static_cast<int>(at.column)},
                     fmt::format("not TOML: {}", std::string_view(error.description())));
  }
}

TomlValue parse_toml_value(std::string_view text, const Place& place) {
  auto refuse = [&](const std::string& message) { throw InputError(place, message); };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = utf8_length(text.substr(i));
    if (length == 0) refuse("the value is not UTF-8");
    if (text[i] == '\n' || text[i] == '\r') refuse("the value has a line break; allowed: one line");
    i += length;
  }
  if (text.find_first_not_of(" \t") == std::string_view::npos)
    refuse("the value is empty; allowed: a TOML value");
  try {
    check_nesting(text, place.file);
  } catch (const InputError&) {
    refuse(fmt::format("the value is nested too deep; allowed: at most {}", kMaxNesting));
  }
  try {
    toml::table table = toml::parse("value = " + std::string(text), std::string_view(place.file));
    return convert(*table.get("value"), place.file, &place);
  } catch (const toml::parse_error& error) {
    // A bare word counts as a string, so that names need no quotes within the shell's.
    if (text.find_first_of(" \t\"'[]{},#=") == std::string_view::npos) {
      TomlValue value;
      value.data = std::string(text);
      value.place = place;
      return value;
    }
    refuse(fmt::format("the value is not TOML: {}", std::string_view(error.description())));
    throw;
  }
}

}  // namespace rehearse
