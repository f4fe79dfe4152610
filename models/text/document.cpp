#include "models/text/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/text/asked_keys.hpp"
#include "models/text/printable.hpp"
#include "models/text/read_text.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse {

struct DocumentState {
  struct Removed {
    std::string table, key;
    Place place;
  };
  std::string file;
  TomlValue root;
  // Known keys by table; several readers of one table share them.
  std::map<const void*, std::shared_ptr<std::vector<std::string>>> known;
  std::vector<Removed> removed;  // by set(); finish() checks that they are known
};

namespace {

constexpr std::size_t kMaxTextBytes = 4096;  // limit of a string value: PATH_MAX

const TomlValue* as_value(const void* table) {
  return static_cast<const TomlValue*>(table);
}

const TomlValue* value_of(const void* table, std::string_view key) {
  if (!table) return nullptr;
  const TomlEntry* entry = find_entry(*as_value(table), key);
  return entry ? &entry->value : nullptr;
}

std::string joined(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

void mark(std::vector<std::string>& known, std::string_view key) {
  if (std::find(known.begin(), known.end(), key) == known.end()) known.emplace_back(key);
}

void note(const std::string& path, std::string_view key, AskedKey::Kind kind,
          std::span<const std::string_view> allowed = {}) {
  if (asked_keys_wanted()) note_asked({kind, joined(path, key), {allowed.begin(), allowed.end()}});
}

std::string describe_number(const Range& range) {
  std::string low = range.above_min ? fmt::format("above {}", range.min) : fmt::format("from {}", range.min);
  if (range.above_min) {
    return range.max >= 1e18 ? fmt::format("a number {}", low)
                             : fmt::format("a number {} and at most {}", low, range.max);
  }
  return range.max >= 1e18 ? fmt::format("a number of at least {}", range.min)
                           : fmt::format("a number {} to {}", low, range.max);
}

std::string describe_integer(std::int64_t min, std::int64_t max) {
  return min == max ? fmt::format("the integer {}", min) : fmt::format("an integer from {} to {}", min, max);
}

[[noreturn]] void refuse_value(const TomlValue& value, const std::string& path, const std::string& allowed) {
  throw InputError(value.place, fmt::format("{} is {}; allowed: {}", path, describe(value), allowed));
}

double checked_number(const TomlValue& value, const std::string& path, const Range& range) {
  double number = 0;
  if (auto* integer = value.get<std::int64_t>()) {
    number = static_cast<double>(*integer);
  } else if (auto* floating = value.get<double>()) {
    number = *floating;
  } else {
    refuse_value(value, path, describe_number(range));
  }
  bool inside = std::isfinite(number) && number <= range.max &&
                (range.above_min ? number > range.min : number >= range.min);
  if (!inside) {
    // Mentions the default upper bound only if the number exceeds it.
    bool too_large = std::isfinite(number) && number > range.max;
    std::string allowed = describe_number(range);
    if (too_large && range.max >= 1e18) allowed += fmt::format(", at most {}", range.max);
    refuse_value(value, path, allowed);
  }
  return number;
}

std::int64_t checked_integer(const TomlValue& value, const std::string& path, std::int64_t min,
                             std::int64_t max) {
  const auto* integer = value.get<std::int64_t>();
  if (!integer || *integer < min || *integer > max) refuse_value(value, path, describe_integer(min, max));
  return *integer;
}

const std::string& checked_text(const TomlValue& value, const std::string& path) {
  const auto* text = value.get<std::string>();
  if (!text) refuse_value(value, path, "a string");
  if (text->size() > kMaxTextBytes) {
    throw InputError(value.place, fmt::format("{} is a string of {} bytes; allowed: at most {}", path,
                                              text->size(), kMaxTextBytes));
  }
  for (std::size_t i = 0; i < text->size(); ++i) {
    if (is_control(std::string_view(*text).substr(i)))
      refuse_value(value, path, "a string without control characters");
  }
  return *text;
}

const TomlValue::Array& checked_array(const TomlValue& value, const std::string& path, const char* of_what) {
  const auto* array = value.get<TomlValue::Array>();
  if (!array) refuse_value(value, path, std::string("an array of ") + of_what);
  return *array;
}

// One step in the path of an override: a key, then indices into arrays.
struct PathStep {
  std::string key;
  std::vector<std::size_t> indices;
};

std::vector<PathStep> parse_path(std::string_view text, const Place& place) {
  auto refuse = [&]() -> std::vector<PathStep> {
    throw InputError(place,
                     fmt::format("{} is not the name of a key; allowed: section.key or section.key[0].key",
                                 in_quotes(text)));
  };
  auto key_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  std::vector<PathStep> steps;
  std::size_t i = 0;
  while (true) {
    PathStep step;
    while (i < text.size() && key_character(text[i])) step.key += text[i++];
    if (step.key.empty() || steps.size() > 32) return refuse();
    while (i < text.size() && text[i] == '[') {
      std::size_t index = 0, digits = 0;
      for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 7; ++i, ++digits) {
        index = index * 10 + static_cast<std::size_t>(text[i] - '0');
      }
      if (digits == 0 || i >= text.size() || text[i] != ']' || step.indices.size() > 8) return refuse();
      ++i;
      step.indices.push_back(index);
    }
    steps.push_back(std::move(step));
    if (i == text.size()) return steps;
    if (text[i++] != '.') return refuse();
  }
}

// Removes the key at the end of the path, if there is one.
void remove(DocumentState& state, const std::vector<PathStep>& steps, const Place& place) {
  if (!steps.back().indices.empty())
    throw InputError(place, "there is no value; allowed: a value for an element of an array");
  TomlValue* table = &state.root;
  std::string path;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    path = joined(path, steps[i].key);
    if (table) table = find(*table, steps[i].key);
    for (const std::size_t index : steps[i].indices) {
      auto* array = table ? table->get<TomlValue::Array>() : nullptr;
      table = array && index < array->size() ? &(*array)[index] : nullptr;
      path += fmt::format("[{}]", index);
    }
    if (table && !table->get<TomlValue::Table>()) table = nullptr;
  }
  if (table) erase_key(*table, steps.back().key);
  state.removed.push_back({path, steps.back().key, place});
}

std::string text_of(const TomlValue& value) {
  if (const auto* number = value.get<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get<double>()) return fmt::format("{}", *number);
  if (const auto* truth = value.get<bool>()) return *truth ? "true" : "false";
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* date = value.get<TomlValue::Date>()) return date->text;
  std::string items;
  if (const auto* array = value.get<TomlValue::Array>())
    for (const TomlValue& item : *array) items += (items.empty() ? "" : ", ") + text_of(item);
  return "[" + items + "]";
}

void add_values(const TomlValue& value, const std::string& path,
                std::vector<std::pair<std::string, std::string>>& found) {
  const auto* array = value.get<TomlValue::Array>();
  if (const auto* table = value.get<TomlValue::Table>()) {
    for (const TomlEntry& entry : *table) add_values(entry.value, joined(path, entry.key), found);
  } else if (array && !array->empty() && array->front().get<TomlValue::Table>()) {
    for (std::size_t i = 0; i < array->size(); ++i)
      add_values((*array)[i], fmt::format("{}[{}]", path, i), found);
  } else {
    found.emplace_back(path, text_of(value));
  }
}

}  // namespace

Section::Section(std::shared_ptr<DocumentState> state, const void* table, std::string path)
    : state_(std::move(state)), table_(table), path_(std::move(path)) {
  if (!table_) {
    known_ = std::make_shared<std::vector<std::string>>();
    return;
  }
  auto& known = state_->known[table_];
  if (!known) known = std::make_shared<std::vector<std::string>>();
  known_ = known;
}

bool Section::present() const {
  return table_ != nullptr;
}

bool Section::has(std::string_view key) const {
  return value_of(table_, key) != nullptr;
}

bool Section::is_array(std::string_view key) const {
  const TomlValue* value = value_of(table_, key);
  return value && value->get<TomlValue::Array>();
}

bool Section::is_table(std::string_view key) const {
  const TomlValue* value = value_of(table_, key);
  return value && value->get<TomlValue::Table>();
}

std::vector<std::string> Section::keys() const {
  std::vector<std::string> names;
  if (!table_) return names;
  for (const auto& entry : *as_value(table_)->get<TomlValue::Table>()) names.push_back(entry.key);
  return names;
}

double Section::number(std::string_view key, Range range, std::optional<double> fallback) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::number);
  if (const TomlValue* value = value_of(table_, key))
    return checked_number(*value, joined(path_, key), range);
  if (!fallback) refuse_missing(key, describe_number(range));
  return *fallback;
}

std::int64_t Section::integer(std::string_view key, std::int64_t min, std::int64_t max,
                              std::optional<std::int64_t> fallback) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::integer);
  if (const TomlValue* value = value_of(table_, key))
    return checked_integer(*value, joined(path_, key), min, max);
  if (!fallback) refuse_missing(key, describe_integer(min, max));
  return *fallback;
}

bool Section::boolean(std::string_view key, std::optional<bool> fallback) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::boolean);
  if (const TomlValue* value = value_of(table_, key)) {
    const bool* found = value->get<bool>();
    if (!found) refuse_value(*value, joined(path_, key), "true or false");
    return *found;
  }
  if (!fallback) refuse_missing(key, "true or false");
  return *fallback;
}

std::string Section::text(std::string_view key, std::optional<std::string> fallback) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::text);
  if (const TomlValue* value = value_of(table_, key)) return checked_text(*value, joined(path_, key));
  if (!fallback) refuse_missing(key, "a string");
  return *fallback;
}

std::size_t Section::choice(std::string_view key, std::span<const std::string_view> allowed,
                            std::optional<std::size_t> fallback) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::choice, allowed);
  std::string names;
  for (std::string_view name : allowed) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  const TomlValue* value = value_of(table_, key);
  if (!value) {
    if (!fallback) refuse_missing(key, names);
    return *fallback;
  }
  const auto* text = value->get<std::string>();
  if (!text) refuse_value(*value, joined(path_, key), names);
  auto found = std::find(allowed.begin(), allowed.end(), *text);
  if (found == allowed.end()) refuse(key, in_quotes(*text), names);
  return static_cast<std::size_t>(found - allowed.begin());
}

std::vector<double> Section::numbers(std::string_view key, Range range) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::list);
  std::vector<double> found;
  if (const TomlValue* value = value_of(table_, key)) {
    std::string path = joined(path_, key);
    for (const auto& item : checked_array(*value, path, "numbers")) {
      found.push_back(checked_number(item, fmt::format("{}[{}]", path, found.size()), range));
    }
  }
  return found;
}

std::vector<std::int64_t> Section::integers(std::string_view key, std::int64_t min, std::int64_t max) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::list);
  std::vector<std::int64_t> found;
  if (const TomlValue* value = value_of(table_, key)) {
    std::string path = joined(path_, key);
    for (const auto& item : checked_array(*value, path, "integers")) {
      found.push_back(checked_integer(item, fmt::format("{}[{}]", path, found.size()), min, max));
    }
  }
  return found;
}

std::vector<std::string> Section::texts(std::string_view key) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::list);
  std::vector<std::string> found;
  if (const TomlValue* value = value_of(table_, key)) {
    std::string path = joined(path_, key);
    for (const auto& item : checked_array(*value, path, "strings")) {
      found.push_back(checked_text(item, fmt::format("{}[{}]", path, found.size())));
    }
  }
  return found;
}

Section Section::section(std::string_view key) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::section);
  std::string path = joined(path_, key);
  const TomlValue* value = value_of(table_, key);
  if (value && !value->get<TomlValue::Table>()) refuse_value(*value, path, fmt::format("a table [{}]", path));
  return Section(state_, value, std::move(path));
}

std::vector<Section> Section::sections(std::string_view key) {
  mark(*known_, key);
  note(path_, key, AskedKey::Kind::sections);
  std::string path = joined(path_, key);
  std::vector<Section> found;
  const TomlValue* value = value_of(table_, key);
  if (!value) return found;
  std::string allowed = fmt::format("tables [[{}]]", path);
  const auto* array = value->get<TomlValue::Array>();
  if (!array) refuse_value(*value, path, allowed);
  for (const auto& item : *array) {
    std::string item_path = fmt::format("{}[{}]", path, found.size());
    if (!item.get<TomlValue::Table>()) refuse_value(item, item_path, allowed);
    found.push_back(Section(state_, &item, std::move(item_path)));
  }
  return found;
}

void Section::expect(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    note(path_, key, AskedKey::Kind::expected);
    mark(*known_, key);
  }
}

void Section::refuse_misspelt(std::string_view key) const {
  const std::vector<std::string> wanted = {std::string(key)};
  for (const auto& name : keys()) {
    bool is_known = std::find(known_->begin(), known_->end(), name) != known_->end();
    if (is_known || nearest_name(name, wanted).empty()) continue;
    throw UnknownKeyError(find_entry(*as_value(table_), name)->place,
                          fmt::format("unknown key {}{}; did you mean \"{}\"?", in_quotes(name),
                                      path_.empty() ? "" : fmt::format(" in [{}]", path_), key));
  }
}

void Section::refuse_missing(std::string_view key, const std::string& allowed) const {
  refuse_misspelt(key);
  refuse(key, "missing", allowed);
}

void Section::require(std::string_view key, std::string_view because, const std::string& allowed) const {
  if (has(key)) return;
  refuse_misspelt(key);
  const TomlValue* value = value_of(table_, because);
  const std::string beside =
      value ? fmt::format(" with {} = {}", because, toml_value_text(*value).substr(0, 60)) : "";
  throw InputError(place(because),
                   fmt::format("{} is missing{}; allowed: {}", joined(path_, key), beside, allowed));
}

TomlValue* Section::tree() const {
  return const_cast<TomlValue*>(as_value(table_));  // the document's own value is not const
}

Place Section::place() const {
  return table_ ? as_value(table_)->place : Place{state_->file, 0, 0};
}

Place Section::place(std::string_view key) const {
  const TomlValue* value = value_of(table_, key);
  return value ? value->place : place();
}

void Section::refuse(std::string_view key, const std::string& found, const std::string& allowed) const {
  throw InputError(place(key), fmt::format("{} is {}; allowed: {}", joined(path_, key), found, allowed));
}

void Section::refuse_inapplicable(std::string_view key, const std::string& found, const std::string& allowed,
                                  InapplicableKeyError::Ignored ignored) const {
  const std::string path = joined(path_, key);
  throw InapplicableKeyError(place(key), path, fmt::format("{} is {}; allowed: {}", path, found, allowed),
                             ignored);
}

void Section::refuse_unknown(std::string_view key, const Place& place, bool is_section) const {
  const std::string nearest = nearest_name(key, *known_);
  const auto name = [&](std::string_view one) {
    const std::string quoted = in_quotes(one);  // shortened and escaped
    return is_section ? fmt::format("[{}]", quoted.substr(1, quoted.size() - 2)) : quoted;
  };
  std::string message = fmt::format("unknown {} {}", is_section ? "section" : "key", name(key));
  if (!path_.empty()) message += fmt::format(" in [{}]", path_);
  if (!nearest.empty()) {
    message += fmt::format("; did you mean {}?", name(nearest));
  } else {
    auto sorted = *known_;
    std::sort(sorted.begin(), sorted.end());
    std::string names;
    for (const auto& known : sorted) names += (names.empty() ? "" : ", ") + known;
    message += fmt::format("; allowed: {}", names.empty() ? "no keys" : names);
  }
  throw UnknownKeyError(place, message);
}

void Section::finish() {
  const auto is_known = [&](const std::string& key) {
    return std::find(known_->begin(), known_->end(), key) != known_->end();
  };
  if (state_)
    for (const DocumentState::Removed& removed : state_->removed)
      if (removed.table == path_ && !is_known(removed.key)) refuse_unknown(removed.key, removed.place, false);
  if (!table_) return;
  for (const auto& entry : *as_value(table_)->get<TomlValue::Table>()) {
    if (!is_known(entry.key))
      refuse_unknown(entry.key, entry.place, path_.empty() && entry.value.get<TomlValue::Table>());
  }
}

Document Document::parse_text(std::string_view text, const std::string& file_name) {
  if (text.size() > kMostTextBytes) throw InputError({file_name, 0, 0}, "is larger than 16 MiB");
  Document document;
  document.state_ = std::make_shared<DocumentState>();
  document.state_->file = file_name;
  document.state_->root = parse_toml(text, file_name);
  return document;
}

Document Document::parse_file(const std::string& path) {
  return parse_text(read_text_file(path, "TOML file"), path);
}

Place place_of(std::string_view option, std::string_view assignment) {
  const char* cut = assignment.size() > 80 ? "..." : "";
  return {fmt::format("{} {}{}", option, printable(assignment.substr(0, 80)), cut), 0, 0};
}

void Document::set(std::string_view assignment, const Place* given) {
  const Place place = given ? *given : place_of("--set", assignment);
  std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw InputError(place, "there is no \"=\"; allowed: --set section.key=value");
  }
  std::string_view path_text = assignment.substr(0, equals);
  while (!path_text.empty() && path_text.back() == ' ') path_text.remove_suffix(1);
  auto steps = parse_path(path_text, place);
  const std::string_view value_text = assignment.substr(equals + 1);
  if (value_text.find_first_not_of(" \t") == std::string_view::npos) {
    remove(*state_, steps, place);
    return;
  }
  TomlValue value = parse_toml_value(value_text, place);

  TomlValue* at = &state_->root;
  std::string path;
  for (const auto& step : steps) {
    auto* table = at->get<TomlValue::Table>();
    if (!table) {
      throw InputError(place,
                       fmt::format("{} is {}; allowed: a table, to set a key in it", path, describe(*at)));
    }
    path = joined(path, step.key);
    TomlValue* next = find(*at, step.key);
    if (!next) {
      TomlValue created = toml_table(place);
      if (!step.indices.empty()) created.data = TomlValue::Array{};
      table->push_back({step.key, place, std::move(created)});
      next = &table->back().value;
    }
    at = next;
    for (std::size_t index : step.indices) {
      auto* array = at->get<TomlValue::Array>();
      if (!array) throw InputError(place, fmt::format("{} is {}; allowed: an array", path, describe(*at)));
      if (index > array->size()) {
        throw InputError(place, fmt::format("{} has {} elements; allowed: an index from 0 to {}", path,
                                            array->size(), array->size()));
      }
      if (index == array->size()) array->push_back(toml_table(place));
      at = &(*array)[index];
      path += fmt::format("[{}]", index);
    }
  }
  *at = std::move(value);
}

std::vector<std::string> Document::fill_in(const Document& defaults) {
  return rehearse::fill_in(state_->root, defaults.state_->root);
}

std::vector<std::pair<std::string, std::string>> Document::values() const {
  std::vector<std::pair<std::string, std::string>> found;
  add_values(state_->root, "", found);
  return found;
}

const TomlValue& Document::tree() const {
  return state_->root;
}

Document Document::copy() const {
  Document copied;
  copied.state_ = std::make_shared<DocumentState>();
  copied.state_->file = state_->file;
  copied.state_->root = state_->root;
  copied.state_->removed = state_->removed;
  return copied;
}

Section Document::root() {
  return Section(state_, &state_->root, "");
}

}  // namespace rehearse
