// Computes which share of the samples comes from a node's cache.
#pragma once

#include <array>
#include <string_view>

namespace rehearse {

enum class CachePolicy {
  none,
  no_replacement,  // keeps the first samples that fit, as MinIO of CoorDL does
  lru,             // replaces the least recently used sample
  random,          // replaces a random sample, which is what Linux's page cache amounts to
};
inline constexpr std::array<std::string_view, 4> kCachePolicyNames = {"none", "no-replacement", "lru",
                                                                      "random"};

// Returns the share of a node's reads, from 0 to 1, that its full cache serves. Each epoch reads every sample
// once, and each of `nodes` nodes reads an equal part. `fits`: the share of all samples that one node's cache
// holds. `shuffled`: every epoch has a new random order, in which a sample can move to another node;
// otherwise all epochs have the same order.
//
// With f = fits, n = nodes, h the hit rate, and a = (1 - h) / (n f):
//   no replacement:           h = f, or n f in a fixed order
//   random, shuffled:         h = ((1 - e^-a) / a)^2 / (n - (n - 1) e^-a)
//   random, fixed order:      h = e^-a
//   LRU, shuffled, one node:  h = f + (1 - f) ln(1 - f)
//   LRU, shuffled, n nodes:   Che et al., "Hierarchical Web Caching Systems" (2002); within 3 points
//   LRU, fixed order:         h = 0, because LRU has just dropped what is read next
// Random replacement: each miss replaces one of the samples that are held. While the node reads r times as
// many samples as there are, a held sample survives with probability exp(-r (1 - h) / f). A sample returns to
// the same node after k epochs with probability 1/n (1 - 1/n)^(k - 1). Its positions x and y in these two
// epochs are uniform, so r = (k - x + y) / n. The formula is the mean over k, x and y.
double hit_rate(CachePolicy policy, double fits, bool shuffled, int nodes = 1);

}  // namespace rehearse
