// How much longer or shorter than their mean the stages of a pipeline take, if their times differ by chance.
#pragma once

#include <vector>

namespace rehearse {

// The time of each stage over the mean of all. `deviation`: standard deviation over mean of the normal
// distribution that times are drawn from, 0 to 0.25. Nothing is drawn: the factors are 1 + deviation x the
// expected values of so many sorted draws (order statistics), so that the slowest stage is as slow as the
// slowest is on average, and the mean of the factors is 1. In the order of the stages stand the fastest, the
// slowest, the second fastest, the second slowest and so on: neighbours' factors add up to 2, and no part of
// the pipeline is slower than another.
std::vector<double> stage_factors(int stages, double deviation);

// The expected values of `count` sorted draws from the standard normal distribution, the least first.
std::vector<double> normal_order_statistics(int count);

}  // namespace rehearse
