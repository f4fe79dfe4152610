#include "simulator/strategies/layout/expert_loads.hpp"

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

namespace rehearse {

std::vector<double> expert_loads(int experts, int ranks, double imbalance, std::uint64_t seed, int layer) {
  // The standard fixes the engine's numbers, but not those of its distributions.
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(layer)};
  std::mt19937_64 random(mixed);
  const auto fraction = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const double sigma = std::sqrt(std::log1p(imbalance * imbalance));  // of the logarithm of a load
  std::vector<double> loads(static_cast<std::size_t>(experts));
  for (double& load : loads) {
    // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
    const double radius = std::sqrt(-2 * std::log(fraction()));
    load = std::exp(sigma * radius * std::cos(2 * std::numbers::pi * fraction()));
  }
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / experts;
  const int each = experts / ranks;
  std::vector<double> of_ranks(static_cast<std::size_t>(ranks), 0);
  for (std::size_t i = 0; i < loads.size(); ++i)
    of_ranks[i / static_cast<std::size_t>(each)] += loads[i] / mean / each;
  return of_ranks;
}

}  // namespace rehearse
