#include "simulator/commands/sweep/sweep_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "models/text/text_hash.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse {
namespace {

// Splits a text at the commas outside of brackets and quotes.
std::vector<std::string_view> split_values(std::string_view text) {
  std::vector<std::string_view> parts;
  int open = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (quote == '"' && c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++open;
    } else if (c == ']' || c == '}') {
      --open;
    } else if (c == ',' && open <= 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parses FIRST..LAST, FIRST..LAST+STEP or FIRST..LAST*FACTOR. Returns nullopt for any other text. A range
// begins with a digit or a sign, so a path such as "../job" is not one.
std::optional<std::vector<std::int64_t>> parse_range(std::string_view text, const Place& place) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos || !number_in<std::int64_t>(text.substr(0, dots))) return std::nullopt;
  const auto refuse = [&](const std::string& why) {
    throw InputError(place, fmt::format("the range {} {}; allowed: ranges of whole numbers such as 1..8, "
                                        "0..64+16 and 1..64*2",
                                        in_quotes(text), why));
  };
  const std::int64_t first = *number_in<std::int64_t>(text.substr(0, dots));
  std::string_view rest = text.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("+*");
  std::int64_t step = 1;
  if (sign != std::string_view::npos) {
    const auto given = number_in<std::int64_t>(rest.substr(sign + 1));
    if (!given) refuse("has a step that is not a whole number");
    step = *given;
  }
  const bool geometric = sign != std::string_view::npos && rest[sign] == '*';
  const auto last = number_in<std::int64_t>(rest.substr(0, sign));
  if (!last) refuse("has an end that is not a whole number");
  if (*last < first) refuse("ends before it begins");
  if (geometric && (first < 1 || step < 2)) refuse("needs a start of at least 1 and a factor of at least 2");
  if (step < 1) refuse("needs a step of at least 1");
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = first;;) {
    numbers.push_back(n);
    if (numbers.size() > kMostSweepValues) refuse(fmt::format("has more than {} values", kMostSweepValues));
    std::int64_t next = 0;
    const bool over =
        geometric ? __builtin_mul_overflow(n, step, &next) : __builtin_add_overflow(n, step, &next);
    if (over || next > *last) return numbers;
    n = next;
  }
}

std::string one_line(const TomlValue& value);

// Writes a value on one line.
std::string one_line(const TomlValue& value) {
  if (const auto* text = value.get<std::string>()) return toml_string(*text);
  if (const auto* boolean = value.get<bool>()) return *boolean ? "true" : "false";
  if (const auto* whole = value.get<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto* number = value.get<double>()) {
    std::string text = fmt::format("{}", *number);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  if (const auto* date = value.get<TomlValue::Date>()) return date->text;
  std::string out;
  if (const auto* array = value.get<TomlValue::Array>()) {
    for (const TomlValue& item : *array) out += (out.empty() ? "" : ", ") + one_line(item);
    return "[" + out + "]";
  }
  for (const TomlEntry& entry : *value.get<TomlValue::Table>())
    out += (out.empty() ? "" : ", ") + toml_string(entry.key) + " = " + one_line(entry.value);
  return "{" + out + "}";
}

}  // namespace

SweepValue sweep_value(const TomlValue& value) {
  SweepValue result{one_line(value), {}};
  const auto* text = value.get<std::string>();
  result.shown = text ? *text : result.toml;
  for (std::size_t i = 0; i < result.shown.size(); ++i)
    if (is_control(std::string_view(result.shown).substr(i)))
      throw InputError(value.place, fmt::format("{} has control characters; allowed: values without them",
                                                describe(value)));
  return result;
}

std::vector<SweepValue> parse_sweep_values(std::string_view text, const Place& place) {
  std::vector<SweepValue> values;
  for (const std::string_view part : split_values(text)) {
    const std::string_view value = trimmed(part);
    if (value.empty()) throw InputError(place, "a value is empty; allowed: values with commas between them");
    if (const auto range = parse_range(value, place)) {
      for (const std::int64_t n : *range) values.push_back({fmt::format("{}", n), fmt::format("{}", n)});
    } else {
      values.push_back(sweep_value(parse_toml_value(value, place)));
    }
    if (values.size() > kMostSweepValues)
      throw InputError(place, fmt::format("there are more than {} values", kMostSweepValues));
  }
  return values;
}

void check_sweep_key(const std::string& key, const Place& place) {
  const bool dotted = key.find('.') != std::string::npos && key.front() != '.' && key.back() != '.';
  if (!dotted)
    throw InputError(place, fmt::format("{} is not the name of a key; allowed: section.key, such as "
                                        "strategy.pipeline",
                                        in_quotes(key)));
}

void check_sweep_size(const Sweep& sweep) {
  std::size_t values = 0;
  for (const SweepAxis& axis : sweep.axes) values += axis.keys.size() * axis.values.size();
  const Place& place = sweep.axes.empty() ? Place{} : sweep.axes.back().places.front();
  if (sweep.points() > kMostSweepPoints)
    throw InputError(
        place, fmt::format("the sweep has more than {0} points; allowed: at most {0}", kMostSweepPoints));
  if (values > 10 * kMostSweepValues)
    throw InputError(place, fmt::format("the sweep has more than {0} values; allowed: at most {0}",
                                        10 * kMostSweepValues));
}

std::int64_t Sweep::points() const {
  std::int64_t count = 1;
  for (const SweepAxis& axis : axes)
    if (__builtin_mul_overflow(count, static_cast<std::int64_t>(axis.values.size()), &count))
      return INT64_MAX;
  return count;
}

std::vector<std::string> Sweep::keys() const {
  std::vector<std::string> all;
  for (const SweepAxis& axis : axes) all.insert(all.end(), axis.keys.begin(), axis.keys.end());
  return all;
}

std::vector<SweepValue> Sweep::values(std::int64_t point) const {
  std::vector<const std::vector<SweepValue>*> steps(axes.size());
  std::int64_t rest = point - 1;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto count = static_cast<std::int64_t>(axes[a].values.size());
    steps[a] = &axes[a].values[static_cast<std::size_t>(rest % count)];
    rest /= count;
  }
  std::vector<SweepValue> all;
  for (const auto* step : steps) all.insert(all.end(), step->begin(), step->end());
  return all;
}

std::int64_t Sweep::point_at(std::int64_t place, const std::vector<bool>& fast) const {
  std::vector<std::int64_t> weight(axes.size(), 1);  // the distance between points of successive values
  for (std::size_t a = axes.size(); a-- > 1;)
    weight[a - 1] = weight[a] * static_cast<std::int64_t>(axes[a].values.size());
  std::int64_t point = 1;
  for (const bool now : {true, false})
    for (std::size_t a = axes.size(); a-- > 0;) {
      if (fast[a] != now) continue;
      const auto count = static_cast<std::int64_t>(axes[a].values.size());
      point += place % count * weight[a];
      place /= count;
    }
  return point;
}

Overrides Sweep::overrides_of(std::int64_t point) const {
  Overrides all(overrides);
  const std::vector<std::string> names = keys();
  const std::vector<SweepValue> chosen = values(point);
  for (std::size_t i = 0; i < names.size(); ++i) all.varied.push_back(names[i] + "=" + chosen[i].toml);
  return all;
}

std::string Sweep::hash() const {
  TextHash hash;
  hash.add(scenario_text);
  for (const std::string& assignment : overrides) hash.add(assignment);
  for (const SweepAxis& axis : axes) {
    hash.add("axis");
    for (const std::string& key : axis.keys) hash.add(key);
    for (const auto& step : axis.values)
      for (const SweepValue& value : step) hash.add(value.toml);
  }
  if (strict) hash.add("strict");
  return hash.hex();
}

SweepAxis parse_vary(std::string_view assignment) {
  Place place{"--vary " + std::string(assignment.substr(0, 80)), 0, 0};
  if (assignment.size() > 80) place.file += "...";
  for (char& c : place.file)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    throw InputError(place, "there is no \"=\"; allowed: --vary section.key=value,value,...");
  SweepAxis axis;
  axis.keys = {std::string(trimmed(assignment.substr(0, equals)))};
  axis.places = {place};
  check_sweep_key(axis.keys.front(), place);
  for (SweepValue& value : parse_sweep_values(assignment.substr(equals + 1), place))
    axis.values.push_back({std::move(value)});
  return axis;
}

void check(const Sweep& sweep) {
  check_sweep_size(sweep);
  std::set<std::string> seen;
  for (const std::string& assignment : sweep.overrides)
    seen.insert(std::string(trimmed(std::string_view(assignment).substr(0, assignment.find('=')))));
  for (const SweepAxis& axis : sweep.axes)
    for (std::size_t k = 0; k < axis.keys.size(); ++k)
      if (!seen.insert(axis.keys[k]).second)
        throw InputError(axis.places[k], fmt::format("{} is varied or set already; allowed: each key once",
                                                     in_quotes(axis.keys[k])));
  for (const SweepAxis& axis : sweep.axes) {
    std::set<std::string> steps;
    for (const auto& step : axis.values) {
      std::string all, shown;
      for (const SweepValue& value : step) {
        all += value.toml + '\n';
        shown += (shown.empty() ? "" : ", ") + value.shown;
      }
      if (!steps.insert(all).second)
        throw InputError(axis.places.front(),
                         fmt::format("the value {} of {} appears twice; allowed: each value once", shown,
                                     axis.keys.front()));
    }
  }
}

}  // namespace rehearse
