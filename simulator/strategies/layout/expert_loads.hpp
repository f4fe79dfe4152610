// How unevenly a router spreads tokens over experts.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Rows that each rank of an expert group is sent in one layer, over their mean: `experts` loads drawn from a
// log-normal distribution with standard deviation `imbalance` x mean, scaled to a mean of 1, and averaged
// over the `experts` / `ranks` neighbours on a rank. A layer's loads follow from `seed` and `layer` alone.
// `experts` must be a multiple of `ranks`.
std::vector<double> expert_loads(int experts, int ranks, double imbalance, std::uint64_t seed, int layer);

}  // namespace rehearse
