#include "simulator/strategies/gradients/starting_phases.hpp"

#include <random>
#include <utility>

namespace rehearse {

std::vector<std::vector<double>> starting_phases(int simulations, int workers, double round_s,
                                                 std::uint64_t seed) {
  // The standard fixes the engine's numbers, but not those of its distributions.
  std::mt19937_64 random(seed);
  const auto fraction = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const auto n = static_cast<std::size_t>(simulations);
  std::vector<std::vector<double>> starts_s(n, std::vector<double>(static_cast<std::size_t>(workers), 0));
  std::vector<std::size_t> parts(n);
  for (std::size_t w = 0; w < static_cast<std::size_t>(workers); ++w) {
    for (std::size_t i = 0; i < n; ++i) parts[i] = i;
    for (std::size_t i = n; i > 1; --i)
      std::swap(parts[i - 1], parts[static_cast<std::size_t>(fraction() * static_cast<double>(i))]);
    for (std::size_t i = 0; i < n; ++i)
      starts_s[i][w] = (static_cast<double>(parts[i]) + fraction()) / static_cast<double>(n) * round_s;
  }
  return starts_s;
}

}  // namespace rehearse
