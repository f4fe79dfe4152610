#include "simulator/strategies/layout/stage_spread.hpp"

#include <cmath>

namespace rehearse {

std::vector<double> normal_order_statistics(int count) {
  // E[X(i:n)] = n!/((i-1)!(n-i)!) times the integral of x p(x) P(x)^(i-1) (1-P(x))^(n-i), where p is the
  // density and P the distribution (David and Nagaraja, "Order Statistics", 2003, section 3.1). The integrand
  // and all its derivatives vanish at both ends, so that sums over equal steps converge exponentially.
  constexpr double kEnd = 9, kStep = 1.0 / 64, kPi = 3.14159265358979323846;
  struct Node {
    double x, log_density, log_below, log_above;
  };
  std::vector<Node> nodes;
  for (double x = -kEnd; x <= kEnd; x += kStep)
    nodes.push_back({x, -x * x / 2 - std::log(2 * kPi) / 2, std::log(std::erfc(-x / std::sqrt(2.0)) / 2),
                     std::log(std::erfc(x / std::sqrt(2.0)) / 2)});
  std::vector<double> expected(static_cast<std::size_t>(count), 0);
  for (int i = 1; i <= count / 2; ++i) {
    const double log_choices =
        std::lgamma(count + 1.0) - std::lgamma(static_cast<double>(i)) - std::lgamma(count - i + 1.0);
    double sum = 0;
    for (const Node& node : nodes)
      sum +=
          node.x * kStep *
          std::exp(log_choices + node.log_density + (i - 1) * node.log_below + (count - i) * node.log_above);
    expected[static_cast<std::size_t>(i - 1)] = sum;
    expected[static_cast<std::size_t>(count - i)] = -sum;  // the distribution is symmetric
  }
  return expected;
}

std::vector<double> stage_factors(int stages, double deviation) {
  std::vector<double> factors(static_cast<std::size_t>(stages), 1);
  if (deviation == 0) return factors;
  const std::vector<double> sorted = normal_order_statistics(stages);
  for (std::size_t stage = 0; stage < factors.size(); ++stage) {
    const std::size_t from_end = stage / 2;
    factors[stage] += deviation * sorted[stage % 2 == 0 ? from_end : sorted.size() - 1 - from_end];
  }
  return factors;
}

}  // namespace rehearse
