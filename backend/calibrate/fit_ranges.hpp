// Latency and bandwidth by ranges of sizes, fitted to measured times of messages.
#pragma once

#include <vector>

#include "backend/calibrate/sample.hpp"
#include "simulator/costs/link_profile.hpp"

namespace rehearse {

struct SizedSample {
  double bytes = 0;
  Sample time;
};

// Breakpoints by residual: of all ways to cut the sizes into at most `most_ranges` ranges of at least six,
// each a line t = latency + bytes / bandwidth (neither below 0), the one with the least
//   2 n ln(mean |t_fitted / t - 1|) + 2 (3 ranges - 1) ln n,
// the Bayesian information criterion for errors of Laplace's distribution with twice its price of a range,
// without which outliers that lie together pass for one. Lines are first those of least absolute relative
// deviations, which outliers do not bend; then, without the times further off than three times the spread of
// the others (1.4826 MAD), those of least squares of relative deviations. Spreads are between the lines
// through lower and upper quartiles. std::invalid_argument below six samples; they need not be sorted.
std::vector<SizeRange> fit_ranges(std::vector<SizedSample> samples, int most_ranges = 5);

// What the ranges say of a message: seconds.
double time_s(const std::vector<SizeRange>& ranges, double bytes);

}  // namespace rehearse
