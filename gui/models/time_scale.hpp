// Between times and places on a line of pixels.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

struct TimeRange {
  Time begin = 0, end = 0;  // end > begin, or nothing is visible
  Time length() const { return end - begin; }
  bool contains(Time time) const { return begin <= time && time < end; }
  bool operator==(const TimeRange&) const = default;
};

// `range` on [left, left + width) pixels.
struct TimeScale {
  TimeRange range;
  double left = 0, width = 1;

  double pixels_per_ns() const { return width / static_cast<double>(std::max<Time>(1, range.length())); }
  double x(Time time) const { return left + static_cast<double>(time - range.begin) * pixels_per_ns(); }
  Time time(double x) const {
    return range.begin + static_cast<Time>(std::llround((x - left) / pixels_per_ns()));
  }
};

// `range` made `factor` times as long about `centre`, which stays at its place; no shorter than 10 ns, and no
// longer than twice `whole`.
TimeRange zoomed(TimeRange range, double factor, Time centre, TimeRange whole);
// Moved by `by`, so far that some of `whole` stays visible.
TimeRange panned(TimeRange range, Time by, TimeRange whole);

// Marks of the axis at round times (1, 2 or 5 times a power of ten), about every `pixels`.
struct Tick {
  Time time = 0;
  std::string text;  // "1.2 ms", as many digits as the distance of the marks needs
};
std::vector<Tick> ticks(const TimeScale& scale, double pixels = 120);
// "14.5204 s": as many digits as tell moments apart that are `distance` from each other.
std::string moment_text(Time at, double distance);
// "1.234 ms": four digits, in the unit that suits.
std::string duration_text(Time ns);

}  // namespace rehearse::gui
