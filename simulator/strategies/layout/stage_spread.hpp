// Computes how much longer or shorter than average the stages of a pipeline take if their times vary
// randomly.
#pragma once

#include <vector>

namespace rehearse {

// Returns the time of each stage over the mean of all stages. `deviation`: standard deviation over mean of
// the normal distribution of the times, 0 to 0.25. Nothing is drawn: the factors are 1 + deviation x the
// expected values of `stages` sorted draws (order statistics), so that the slowest stage is as slow as the
// slowest of `stages` draws is on average, and the mean of the factors is 1. The stages are ordered as the
// fastest, the slowest, the second fastest, the second slowest and so on: neighbours' factors add up to 2, so
// no part of the pipeline is slower than another.
std::vector<double> stage_factors(int stages, double deviation);

// Returns the expected values of `count` sorted draws from the standard normal distribution, in ascending
// order.
std::vector<double> normal_order_statistics(int count);

}  // namespace rehearse
