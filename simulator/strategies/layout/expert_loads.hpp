// Draws how unevenly a router spreads tokens over experts.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Returns the rows that each rank of an expert group receives in one layer, over their mean: `experts` loads
// are drawn from a log-normal distribution with standard deviation `imbalance` x mean, scaled to a mean of 1,
// and averaged over the `experts` / `ranks` neighbours on a rank. A layer's loads depend only on `seed` and
// `layer`. `experts` must be a multiple of `ranks`.
std::vector<double> expert_loads(int experts, int ranks, double imbalance, std::uint64_t seed, int layer);

}  // namespace rehearse
