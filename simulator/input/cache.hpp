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

// Returns the share of a node's reads, from 0 to 1, that its cache serves once it is full, if `nodes` read
// every sample once an epoch, an equal part each. `fits`: the share f of all samples that one node's cache
// holds. `shuffled`: each epoch has a new random order, in which samples come to other nodes; otherwise all
// epochs have the same one.
//
// Random replacement keeps a sample, while a node reads r times as many as there are samples, with the
// probability exp(-r (1 - h) / f), h being the hit rate: each miss replaces one of those that are held. On
// one node, a sample that was read at position x of the previous epoch is read at position y of this one, r =
// 1 - x + y, and the mean over uniform x and y is h = ((1 - e^-a) / a)^2 with a = (1 - h) / f. On n nodes it
// returns after k epochs with probability 1/n (1 - 1/n)^(k-1), and r = (k - x + y) / n: with a = (1 - h) / (n
// f), h = e^-a / (n - (n - 1) e^-a) * 2 (cosh a - 1) / a^2, which is the former for n = 1, and tends to f.
// LRU keeps what was read less than some time ago, in which the node reads a share f of all samples: h = f +
// (1 - f) ln(1 - f) on one node; on several, the time is found as in Che et al., "Hierarchical Web Caching
// Systems" (2002), to 3 points. In the same order every distance is one epoch: LRU has always just dropped
// what is read next, and h = exp(-(1 - h) / (n f)) for random replacement.
double hit_rate(CachePolicy policy, double fits, bool shuffled, int nodes = 1);

}  // namespace rehearse
