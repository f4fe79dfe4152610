// A time measured again and again until its median is steady.
#pragma once

#include <functional>
#include <vector>

namespace rehearse {

// Seconds.
struct Sample {
  double median_s = 0, low_s = 0, high_s = 0;  // quartiles
  int repeats = 0;
  bool steady = false;  // the median is known as well as was asked for
};

// Value at `share` of the sorted numbers, between neighbours in proportion (Hyndman and Fan 1996, type 7).
double quantile(std::vector<double> numbers, double share);

struct Repeats {
  int fewest = 8, most = 301;  // below 8 no interval of 95 % is inside of them
  double precision = 0.02;     // half the 95 % confidence interval of the median, over the median
  double most_s = 0.5;         // then it ends in any case, once there are three
};

// Calls `once`, which returns seconds, first for warming up, without counting.
Sample sample(const std::function<double()>& once, const Repeats& repeats);

// Of times taken already. The interval is that of order statistics: between the values number
// n/2 -+ 0.98 sqrt(n), whatever the distribution.
Sample sample_of(std::vector<double> times_s, double precision);

}  // namespace rehearse
