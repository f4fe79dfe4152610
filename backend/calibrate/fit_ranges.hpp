// Fits latency and bandwidth by ranges of sizes to measured times of messages.
#pragma once

#include <vector>

#include "backend/calibrate/sample.hpp"
#include "simulator/costs/link_profile.hpp"

namespace rehearse {

struct SizedSample {
  double bytes = 0;
  Sample time;
};

// Splits the sizes into at most `most_ranges` ranges of at least six, each with a line t = latency + bytes /
// bandwidth (neither below 0), and chooses the split with the least
//   2 n ln(mean |t_fitted / t - 1|) + 2 (3 ranges - 1) ln n.
// This is the Bayesian information criterion for errors with a Laplace distribution, with twice its penalty
// for a range, without which adjacent outliers would become a range. Lines first minimize the absolute
// relative deviations, so that outliers do not bend them; then, without times that are further off than three
// times the spread of the others (1.4826 MAD), the squares of relative deviations. The spreads of the results
// are between the lines through the lower and the upper quartiles. Samples need not be sorted. Throws
// std::invalid_argument for fewer than six samples.
std::vector<SizeRange> fit_ranges(std::vector<SizedSample> samples, int most_ranges = 5);

// Returns the predicted time of a message in seconds.
double time_s(const std::vector<SizeRange>& ranges, double bytes);

}  // namespace rehearse
