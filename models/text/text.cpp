#include "models/text/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace rehearse {
namespace {

struct Unit {
  double size;
  std::string_view name;
};

// Formats 3 significant digits, without exponent and trailing zeros; for magnitudes below 1000.
std::string three_digits(double value) {
  double magnitude = std::fabs(value);
  int decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  // Below 1, leading zeros of the fraction do not count as digits.
  for (double next = 1; decimals < 12 && magnitude > 0 && magnitude < next; next /= 10) ++decimals;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

double rounded(double value) {
  if (value == 0) return 0;
  double scale = std::pow(10.0, 2 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

// `units` must be sorted in ascending order.
std::string in_units(double value, std::span<const Unit> units) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinity" : "-infinity";
  const Unit* unit = &units.front();
  for (const Unit& larger : units) {
    if (std::fabs(rounded(value / unit->size)) * unit->size >= larger.size * (1 - 1e-12)) unit = &larger;
  }
  double scaled = value / unit->size;
  std::string number = std::fabs(rounded(scaled)) < 1000 ? three_digits(rounded(scaled))
                       : std::fabs(scaled) < 9e18        ? with_thousands(std::lround(scaled))
                                                         : fmt::format("{:.2e}", scaled);
  if (number == "-0") number = "0";
  return unit->name.empty() ? number : fmt::format("{} {}", number, unit->name);
}

}  // namespace

std::string human_bytes(double bytes) {
  static constexpr std::array<Unit, 7> units = {
      {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}, {1e18, "EB"}}};
  return in_units(bytes, units);
}

std::string human_time_s(double seconds) {
  static constexpr std::array<Unit, 4> units = {{{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}}};
  return seconds == 0 ? "0 s" : in_units(seconds, units);
}

std::string human_count(double count) {
  static constexpr std::array<Unit, 5> units = {{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}}};
  return in_units(count, units);
}

std::string with_thousands(long number) {
  std::string digits = fmt::format("{}", number);
  std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace rehearse
