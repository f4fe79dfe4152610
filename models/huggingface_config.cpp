#include "models/huggingface_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "models/text/document.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse {

using Json = nlohmann::json;

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::string:
      return "a string " + in_quotes(value.get_ref<const std::string&>());
    case Json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case Json::value_t::object:
      return "an object";
    default:  // numbers and booleans
      return value.dump();
  }
}

namespace {

// `byte` is the position of the last character read, counted from 1.
[[noreturn]] void refuse_syntax(const std::string& path, const std::string& text, std::size_t byte) {
  const std::size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const std::string_view before = std::string_view(text).substr(0, at);
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  // Counts characters and not UTF-8 continuation bytes.
  const auto column =
      static_cast<int>(std::count_if(before.begin() + static_cast<std::ptrdiff_t>(begin), before.end(),
                                     [](char c) { return (c & 0xC0) != 0x80; })) +
      1;
  const std::string found =
      at == text.size() ? "the file ends too early" : "not JSON from here on, or just before";
  throw InputError({path, line, column}, found + "; allowed: the config.json of a model");
}

// JSON text in which Python's Infinity, -Infinity and NaN are in quotes.
struct QuotedText {
  std::string text;
  std::vector<std::size_t> quotes;  // positions of the added quotes

  // The position in the file of a position in the text.
  std::size_t in_file(std::size_t byte) const {
    return byte -
           static_cast<std::size_t>(std::lower_bound(quotes.begin(), quotes.end(), byte) - quotes.begin());
  }
};

QuotedText quote_numbers(const std::string& text) {
  QuotedText quoted;
  const auto quote = [&] {
    quoted.quotes.push_back(quoted.text.size());
    quoted.text += '"';
  };
  bool inside = false;  // of a string
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!inside) {
      std::size_t length = 0;
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (length == 0 && std::string_view(text).substr(i).starts_with(word)) length = word.size();
      if (length > 0) {
        quote();
        quoted.text.append(text, i, length);
        quote();
        i += length - 1;
        continue;
      }
    }
    if (text[i] == '"') inside = !inside;
    quoted.text += text[i];
    if (inside && text[i] == '\\' && i + 1 < text.size()) quoted.text += text[++i];
  }
  return quoted;
}

// Calls `use` with each name of a key, until it returns true.
template <typename Use>
void each_name(std::string_view key, const Use& use) {
  while (true) {
    const std::size_t bar = key.find('|');
    if (use(key.substr(0, bar)) || bar == std::string_view::npos) return;
    key.remove_prefix(bar + 1);
  }
}

// Returns the value at a name with dots; nullptr if it is absent.
const Json* value_at(const Json& json, std::string_view name) {
  const Json* at = &json;
  while (true) {
    const std::size_t dot = name.find('.');
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(name.substr(0, dot)));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == std::string_view::npos) return at;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

HuggingFaceConfig::HuggingFaceConfig(std::string path, const std::string& text) : path_(std::move(path)) {
  const QuotedText quoted = quote_numbers(text);
  try {
    json_ = Json::parse(quoted.text);
  } catch (const Json::parse_error& error) {
    refuse_syntax(path_, text, quoted.in_file(error.byte));
  } catch (const Json::exception&) {  // a number that does not fit into a double
    throw InputError({path_, 0, 0}, "has a number out of range; allowed: the config.json of a model");
  }
  if (!json_.is_object()) {
    throw InputError({path_, 0, 0}, fmt::format("is {}; allowed: an object, {{...}}", describe(json_)));
  }
}

HuggingFaceConfig::HuggingFaceConfig(std::string path, std::string prefix, Json json)
    : path_(std::move(path)), prefix_(std::move(prefix)), json_(std::move(json)) {}

bool HuggingFaceConfig::has(std::string_view key) const {
  bool found = false;
  each_name(key, [&](std::string_view name) { return found = value_at(json_, name) != nullptr; });
  return found;
}

const Json* HuggingFaceConfig::find(std::string_view key) const {
  const Json* found = nullptr;
  each_name(key, [&](std::string_view name) {
    const Json* value = value_at(json_, name);
    if (value && !value->is_null()) found = value;
    return found != nullptr;
  });
  return found;
}

std::string HuggingFaceConfig::name(std::string_view key) const {
  std::string found(key.substr(0, key.find('|')));
  each_name(key, [&](std::string_view one) {
    const Json* value = value_at(json_, one);
    const bool counts = value && !value->is_null();
    if (counts) found = one;
    return counts;
  });
  return found;
}

std::vector<std::string> HuggingFaceConfig::keys() const {
  std::vector<std::string> found;
  for (const auto& [key, value] : json_.items()) {
    const bool nothing = value.is_null() || value == false || (value.is_number() && value == 0) ||
                         ((value.is_string() || value.is_structured()) && value.empty()) || value == "";
    if (!nothing) found.push_back(key);
  }
  return found;
}

HuggingFaceConfig HuggingFaceConfig::object(std::string_view key) const {
  const Json* value = find(key);
  if (!value) refuse_missing(key, "an object, {...}");
  if (!value->is_object()) refuse(key, describe(*value), "an object, {...}");
  return {path_, fmt::format("{}{}.", prefix_, name(key)), *value};
}

double HuggingFaceConfig::whole_of_all(std::string_view key, std::int64_t max, std::optional<double> fallback,
                                       std::int64_t min) const {
  const Json* value = find(key);
  if (!value || !value->is_array() || value->empty()) return whole(key, max, fallback, min);
  for (const Json& item : *value)
    if (item != value->front() || !item.is_number_unsigned() ||
        item.get<std::uint64_t>() < static_cast<std::uint64_t>(min) ||
        item.get<std::uint64_t>() > static_cast<std::uint64_t>(max))
      refuse(
          key, "an array with " + describe(item),
          fmt::format("an integer from {} to {}, or an array of one such integer for all layers", min, max));
  return static_cast<double>(value->front().get<std::uint64_t>());
}

double HuggingFaceConfig::number(std::string_view key, double min, double max, double fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_number() || value->get<double>() < min || value->get<double>() > max)
    refuse(key, describe(*value), fmt::format("a number from {} to {}", min, max));
  return value->get<double>();
}

double HuggingFaceConfig::whole(std::string_view key, std::int64_t max, std::optional<double> fallback,
                                std::int64_t min) const {
  const std::string allowed =
      min == max ? fmt::format("the integer {}", min) : fmt::format("an integer from {} to {}", min, max);
  const Json* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value) refuse_missing(key, allowed);
  if (!value->is_number_integer()) refuse(key, describe(*value), allowed);
  // Unsigned values can exceed int64.
  const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
  if (huge || value->get<std::int64_t>() < min || value->get<std::int64_t>() > max) {
    refuse(key, describe(*value), allowed);
  }
  return static_cast<double>(value->get<std::int64_t>());
}

double HuggingFaceConfig::whole_or_none(std::string_view key, std::int64_t max, double absent) const {
  return whole(key, max, has(key) ? 0 : absent);
}

double HuggingFaceConfig::probability(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_number() || value->get<double>() < 0 || value->get<double>() >= 1) {
    refuse(key, describe(*value), "a number from 0 to below 1");
  }
  return value->get<double>();
}

bool HuggingFaceConfig::boolean(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) refuse(key, describe(*value), "true or false");
  return value->get<bool>();
}

std::string HuggingFaceConfig::text(std::string_view key, const std::string& fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_string()) refuse(key, describe(*value), "a string");
  return value->get<std::string>();
}

std::vector<std::size_t> HuggingFaceConfig::choices(std::string_view key, std::size_t count,
                                                    std::span<const std::string_view> allowed) const {
  const Json* value = find(key);
  if (!value) return {};
  if (!value->is_array() || value->size() != count)
    refuse(key, describe(*value), fmt::format("an array of {}, one for each layer", count));
  std::vector<std::size_t> found;
  for (const Json& item : *value) {
    const auto known = item.is_string()
                           ? std::find(allowed.begin(), allowed.end(), item.get_ref<const std::string&>())
                           : allowed.end();
    if (known == allowed.end())
      refuse(fmt::format("{}[{}]", name(key), found.size()), describe(item),
             fmt::format("\"{}\"", fmt::join(allowed, "\", \"")));
    found.push_back(static_cast<std::size_t>(known - allowed.begin()));
  }
  return found;
}

std::vector<bool> HuggingFaceConfig::flags(std::string_view key, std::size_t count) const {
  const Json* value = find(key);
  if (!value) return {};
  if (!value->is_array() || value->size() != count)
    refuse(key, describe(*value), fmt::format("an array of {}, one for each layer", count));
  std::vector<bool> found;
  for (const Json& item : *value) {
    const bool one = item == true || (item.is_number_integer() && item == 1);
    const bool zero = item == false || (item.is_number_integer() && item == 0);
    if (!one && !zero) refuse(fmt::format("{}[{}]", name(key), found.size()), describe(item), "0 or 1");
    found.push_back(one);
  }
  return found;
}

std::vector<int> HuggingFaceConfig::layers(std::string_view key, int count) const {
  const Json* value = find(key);
  if (!value) return {};
  if (!value->is_array()) refuse(key, describe(*value), "an array of integers");
  std::vector<bool> there(static_cast<std::size_t>(count));
  for (const Json& item : *value) {
    const bool small = item.is_number_unsigned() && item.get<std::uint64_t>() < there.size();
    if (!small)
      refuse(key, fmt::format("an array with {}", describe(item)),
             fmt::format("layers from 0 to {}", count - 1));
    there[item.get<std::size_t>()] = true;
  }
  std::vector<int> found;
  for (int i = 0; i < count; ++i)
    if (there[static_cast<std::size_t>(i)]) found.push_back(i);
  return found;
}

std::size_t HuggingFaceConfig::choice(std::string_view key, const Json* value,
                                      std::span<const std::string_view> allowed) const {
  const std::string names = fmt::format("\"{}\"", fmt::join(allowed, "\", \""));
  if (!value) refuse_missing(key, names);
  if (!value->is_string()) refuse(key, describe(*value), names);
  const auto& name = value->get_ref<const std::string&>();
  const auto found = std::find(allowed.begin(), allowed.end(), name);
  if (found == allowed.end()) {
    const std::vector<std::string> known(allowed.begin(), allowed.end());
    const std::string near = nearest_name(name, known);
    refuse(key, in_quotes(name), near.empty() ? names : fmt::format("{}; did you mean \"{}\"?", names, near));
  }
  return static_cast<std::size_t>(found - allowed.begin());
}

void HuggingFaceConfig::divides(std::string_view key, double value, std::string_view of, double whole) const {
  if (std::fmod(whole, value) != 0) {
    refuse(key, fmt::format("{}", value), fmt::format("a divisor of {}, {}", name(of), whole));
  }
}

void HuggingFaceConfig::refuse(std::string_view key, const std::string& found,
                               const std::string& allowed) const {
  throw InputError({path_, 0, 0}, fmt::format("{}{} is {}; allowed: {}", prefix_, name(key), found, allowed));
}

void HuggingFaceConfig::refuse_missing(std::string_view key, const std::string& allowed) const {
  throw InputError({path_, 0, 0}, fmt::format("{}{} is missing; allowed: {}", prefix_, name(key), allowed));
}

}  // namespace rehearse
