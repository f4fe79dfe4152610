#include "simulator/report/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/text/printable.hpp"

namespace rehearse {
namespace {

int decimals_for(double value, int digits) {
  if (!(std::abs(value) > 0)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 12);
}

// The same for the value as it is printed: 9.996 with three digits is 10.0, not 10.00.
int decimals_when_rounded(double value, int digits) {
  const int decimals = decimals_for(value, digits);
  const double scale = std::pow(10.0, decimals);
  return decimals_for(std::round(value * scale) / scale, digits);
}

// Formats a value in the largest of `units` in which it is at least one; each unit is a thousand of the
// previous one.
std::string in_units(double value, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  return with_digits(value, 3) + ' ' + units[unit];
}

}  // namespace

TimeScale::TimeScale(double largest_s) {
  constexpr std::array<std::pair<double, const char*>, 4> units = {
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  for (const auto& [size, name] : units) {
    unit_s_ = size;
    unit_ = name;
    if (largest_s >= size) break;
  }
  decimals_ = std::min(decimals_for(largest_s / unit_s_, 4), 3);
}

std::string TimeScale::operator()(double seconds) const {
  return fmt::format("{:.{}f} {}", seconds / unit_s_, decimals_, unit_);
}

std::string with_digits(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, decimals_when_rounded(value, digits));
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t first = text.front() == '-' ? 1 : 0;
  for (std::size_t i = point; i > first + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string with_prefix(double value) {
  // 999.5 rounds to 1,000: the next unit says it as 1.00.
  if (value >= 999.5e9) return with_digits(value / 1e12, 3) + " T";
  if (value >= 999.5e6) return with_digits(value / 1e9, 3) + " G";
  if (value >= 999.5e3) return with_digits(value / 1e6, 3) + " M";
  if (value >= 1e4) return with_digits(value / 1e3, 3) + " k";
  return with_digits(value, 3);
}

std::string in_percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", std::round(1000 * share) / 10 + 0.0);  // the sum turns -0 into 0
}

std::string device_noun(const Device& device) {
  return device.compute_capability > 0 ? "GPU" : "device";
}

std::string in_money(double amount, const std::string& currency) {
  return with_prefix(amount) + ' ' + currency;
}

std::string in_watt_hours(double wh) {
  return in_units(1000 * wh, {"mWh", "Wh", "kWh", "MWh", "GWh"});
}

std::string in_grams(double grams) {
  return in_units(1000 * grams, {"mg", "g", "kg", "t", "kt"});
}

std::string in_gibibytes(double bytes) {
  return with_digits(bytes / 1073741824.0, 3);
}

std::string counted(double number, const std::string& noun) {
  const bool hisses = noun.ends_with("ch") || noun.ends_with("ss");  // micro-batches, passes
  return with_digits(number, 1) + " " + noun + (number == 1 ? "" : hisses ? "es" : "s");
}

std::string csv_field(const std::string& text) {
  const std::string shown = printable(text);
  if (shown.find_first_of(",\"") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string duration(double seconds) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  if (seconds >= kDay) return with_digits(seconds / kDay, 3) + " days";
  if (seconds >= kHour) return with_digits(seconds / kHour, 3) + " hours";
  return TimeScale(seconds)(seconds);
}

std::string in_gb_per_s(double bytes_per_s) {
  return with_digits(bytes_per_s / 1e9, 3) + " GB/s";
}

}  // namespace rehearse
