#include "simulator/costs/jitter.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

// Sebastiano Vigna's splitmix64 (public domain): the finalizer of a counter.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Returns a number in (0, 1].
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 1) * 0x1p-53;
}

}  // namespace

double jitter_factor(const Jitter& jitter, int rank, int step, int op) {
  if (!jitter.any()) return 1;
  std::uint64_t key = mixed(jitter.seed);
  key = mixed(key ^ static_cast<std::uint64_t>(rank));
  key = mixed(key ^ static_cast<std::uint64_t>(jitter.per == Jitter::Per::device ? 0 : step));
  key = mixed(key ^ static_cast<std::uint64_t>(jitter.per == Jitter::Per::op ? op : 0));
  const double first = uniform(key), second = uniform(mixed(key));
  const double sigma = jitter.deviation;
  // Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958).
  constexpr double kTurn = 6.283185307179586;
  const double normal = std::sqrt(-2 * std::log(first)) * std::cos(kTurn * second);
  switch (jitter.kind) {
    case Jitter::Kind::none:
      break;
    case Jitter::Kind::normal:
      return std::max(0.0, 1 + sigma * normal);
    case Jitter::Kind::log_normal: {
      const double variance =
          std::log1p(sigma * sigma);  // of the logarithm, so that mean and deviation are as asked
      return std::exp(std::sqrt(variance) * normal - variance / 2);
    }
    case Jitter::Kind::exponential:
      return std::max(0.0, 1 - sigma - sigma * std::log(first));
  }
  return 1;
}

}  // namespace rehearse
