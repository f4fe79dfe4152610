// Repeats a time measurement until its median is steady.
#pragma once

#include <functional>
#include <vector>

namespace rehearse {

// All times are in seconds.
struct Sample {
  double median_s = 0, low_s = 0, high_s = 0;  // quartiles
  int repeats = 0;
  bool steady = false;  // the median has the requested precision
};

// Returns the value at `share` of the sorted numbers, interpolated linearly between neighbours (Hyndman and
// Fan 1996, type 7).
double quantile(std::vector<double> numbers, double share);

struct Repeats {
  int fewest = 8, most = 301;  // with fewer than 8, no 95 % interval is within them
  double precision = 0.02;     // half the 95 % confidence interval of the median, relative to the median
  double most_s = 0.5;         // ends it in any case, once there are three
};

// Calls `once`, which returns seconds, repeatedly; the first call is a warm-up and does not count.
Sample sample(const std::function<double()>& once, const Repeats& repeats);

// Evaluates times that are already measured. The confidence interval is that of order statistics, between the
// values number n/2 -+ 0.98 sqrt(n), for any distribution.
Sample sample_of(std::vector<double> times_s, double precision);

}  // namespace rehearse
