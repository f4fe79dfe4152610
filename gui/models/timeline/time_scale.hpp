// Converts between times and horizontal pixel positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

struct TimeRange {
  Time begin = 0, end = 0;  // end > begin, unless nothing is visible
  Time length() const { return end - begin; }
  bool contains(Time time) const { return begin <= time && time < end; }
  bool operator==(const TimeRange&) const = default;
};

// Maps `range` to [left, left + width) pixels.
struct TimeScale {
  TimeRange range;
  double left = 0, width = 1;

  double pixels_per_ns() const { return width / static_cast<double>(std::max<Time>(1, range.length())); }
  double x(Time time) const { return left + static_cast<double>(time - range.begin) * pixels_per_ns(); }
  Time time(double x) const {
    return range.begin + static_cast<Time>(std::llround((x - left) / pixels_per_ns()));
  }
};

// Scales the length of `range` by `factor` around `centre`, which keeps its position on the screen. The
// result is at least 10 ns and at most twice as long as `whole`.
TimeRange zoomed(TimeRange range, double factor, Time centre, TimeRange whole);
// Moves `range` by `by`, but only so far that part of `whole` stays visible.
TimeRange panned(TimeRange range, Time by, TimeRange whole);

// Axis marks at round times (1, 2 or 5 times a power of ten), about every `pixels`.
struct Tick {
  Time time = 0;
  std::string text;  // "1.2 ms", with as many digits as the distance between marks requires
};
std::vector<Tick> ticks(const TimeScale& scale, double pixels = 120);
// Returns e.g. "14.5204 s", with enough digits to distinguish moments that are `distance` ns apart.
std::string moment_text(Time at, double distance);
// Returns e.g. "1.234 ms": four digits and a suitable unit.
std::string duration_text(Time ns);

}  // namespace rehearse::gui
