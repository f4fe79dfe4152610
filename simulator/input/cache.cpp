#include "simulator/input/cache.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

// Returns the smallest h in [0, 1] with h = rate(h), for a rate that grows with h and is above 0 at h = 0.
template <class Rate>
double smallest_fixed_point(Rate rate) {
  double h = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double next = rate(h);
    if (next - h < 1e-12) break;
    h = next;
  }
  return h;
}

// Returns the hit rate of LRU on one of n nodes, each of which reads a random n-th of the samples an epoch.
// It holds what was read less than `age` ago, in epochs, with the age at which those are the share f of all
// samples. The mean over the position y in the epoch of whatever is read, or asked for.
double lru_hit_rate(double f, double n) {
  constexpr int kPositions = 100;
  const auto unread = [n](double epochs) {  // the probability that a node reads a sample in none of them
    return epochs <= 0 ? 1
                       : std::pow(1 - 1 / n, std::floor(epochs)) * (1 - (epochs - std::floor(epochs)) / n);
  };
  const auto mean = [](const auto& at) {
    double sum = 0;
    for (int i = 0; i < kPositions; ++i) sum += at((i + 0.5) / kPositions);
    return sum / kPositions;
  };
  double low = 0, high = 1;
  const auto held = [&](double age) {
    return mean([&](double y) { return 1 - (1 - std::min(y, age) / n) * unread(age - y); });
  };
  while (held(high) < f) high *= 2;
  for (int i = 0; i < 50; ++i) {
    const double age = (low + high) / 2;
    (held(age) < f ? low : high) = age;
  }
  return mean([&](double y) { return 1 - unread(low - y); });
}

}  // namespace

double hit_rate(CachePolicy policy, double fits, bool shuffled, int nodes) {
  const double f = std::max(0.0, fits), n = nodes;
  // In the same order, a node reads the same part of the samples in all epochs.
  const double held = shuffled ? f : n * f;
  if (held <= 0 || policy == CachePolicy::none) return 0;
  if (held >= 1) return 1;
  switch (policy) {
    case CachePolicy::none:
      break;
    case CachePolicy::no_replacement:
      return held;
    case CachePolicy::lru:
      if (!shuffled) return 0;
      return nodes == 1 ? f + (1 - f) * std::log1p(-f) : lru_hit_rate(f, n);
    case CachePolicy::random:
      return smallest_fixed_point([&](double h) {
        const double a = (1 - h) / (n * f);
        if (!shuffled) return std::exp(-a);
        const double kept = std::pow(-std::expm1(-a) / a, 2);
        return kept / (n - (n - 1) * std::exp(-a));
      });
  }
  return 0;
}

}  // namespace rehearse
