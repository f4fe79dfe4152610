#include "simulator/strategies/layout/batch_division.hpp"

#include <cstddef>
#include <limits>
#include <set>
#include <utility>

namespace rehearse {

std::vector<int> divide_samples(const std::vector<double>& sample_s, int each, int most_moved) {
  std::vector<int> samples(sample_s.size(), each);
  std::set<std::pair<double, std::size_t>> takes, next;  // with the samples it has, and with one more
  const auto enter = [&](std::size_t replica) {
    takes.insert({samples[replica] * sample_s[replica], replica});
    next.insert({(samples[replica] + 1) * sample_s[replica], replica});
  };
  const auto change = [&](std::size_t replica, int by) {
    takes.erase({samples[replica] * sample_s[replica], replica});
    next.erase({(samples[replica] + 1) * sample_s[replica], replica});
    samples[replica] += by;
    enter(replica);
  };
  for (std::size_t replica = 0; replica < samples.size(); ++replica) enter(replica);
  // Rounding must not move samples between equal replicas.
  constexpr double kFaster = 1 - 1e-9;
  const int most = most_moved > 0 ? most_moved : std::numeric_limits<int>::max();
  for (int moved = 0; moved < most; ++moved) {
    const auto [slowest_s, from] = *takes.rbegin();
    const auto [fastest_s, to] = *next.begin();
    if (samples[from] == 1 || fastest_s >= slowest_s * kFaster) break;
    change(from, -1);
    change(to, 1);
  }
  return samples;
}

}  // namespace rehearse
