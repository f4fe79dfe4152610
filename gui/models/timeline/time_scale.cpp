#include "gui/models/timeline/time_scale.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace rehearse::gui {

namespace {

struct Unit {
  double ns;
  const char* name;
};
constexpr std::array<Unit, 4> kUnits = {{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
constexpr Time kShortest = 10;

const Unit& unit_for(double ns) {
  for (const Unit& unit : kUnits)
    if (std::abs(ns) >= unit.ns) return unit;
  return kUnits.back();
}

// Returns 1, 2 or 5 times a power of ten, at least `ns`.
double round_distance(double ns) {
  const double power = std::pow(10, std::floor(std::log10(std::max(1.0, ns))));
  for (const double factor : {1, 2, 5})
    if (factor * power >= ns) return factor * power;
  return 10 * power;
}

}  // namespace

TimeRange zoomed(TimeRange range, double factor, Time centre, TimeRange whole) {
  const auto most = std::max<double>(kShortest, 2.0 * static_cast<double>(whole.length()));
  const double length = static_cast<double>(range.length());
  const double wanted = std::clamp(length * factor, static_cast<double>(kShortest), most);
  const double share = static_cast<double>(centre - range.begin) / std::max(1.0, length);
  const Time begin = centre - static_cast<Time>(std::llround(wanted * share));
  return panned({begin, begin + static_cast<Time>(std::llround(wanted))}, 0, whole);
}

TimeRange panned(TimeRange range, Time by, TimeRange whole) {
  // Keeps a tenth of the visible range filled.
  const Time kept = range.length() / 10;
  const Time lowest = whole.begin - range.length() + kept, highest = whole.end - kept;
  const Time begin = std::clamp(range.begin + by, std::min(lowest, highest), std::max(lowest, highest));
  return {begin, begin + range.length()};
}

std::vector<Tick> ticks(const TimeScale& scale, double pixels) {
  const double distance = round_distance(pixels / scale.pixels_per_ns());
  const Unit& unit = unit_for(std::max(std::abs(static_cast<double>(scale.range.begin)),
                                       std::abs(static_cast<double>(scale.range.end))));
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(distance / unit.ns) - 1e-9)));
  std::vector<Tick> result;
  const double first = std::ceil(static_cast<double>(scale.range.begin) / distance);
  for (double i = first + 0.0; i * distance <= static_cast<double>(scale.range.end); ++i)  // 0.0: avoids -0
    result.push_back({static_cast<Time>(std::llround(i * distance)),
                      fmt::format("{:.{}f} {}", i * distance / unit.ns, digits, unit.name)});
  return result;
}

std::string moment_text(Time at, double distance) {
  if (at == 0) return "0 s";
  const Unit& unit = unit_for(static_cast<double>(at));
  const double share = std::max(1.0, distance) / unit.ns;
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(share) - 1e-9)));
  return fmt::format("{:.{}f} {}", static_cast<double>(at) / unit.ns, digits, unit.name);
}

std::string duration_text(Time ns) {
  const Unit& unit = unit_for(static_cast<double>(ns));
  const double value = static_cast<double>(ns) / unit.ns;
  if (unit.ns == 1) return fmt::format("{} ns", ns);
  const int before = std::max(1, static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1);
  return fmt::format("{:.{}f} {}", value, std::max(0, 4 - before), unit.name);
}

}  // namespace rehearse::gui
