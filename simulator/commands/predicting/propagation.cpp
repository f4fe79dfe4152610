#include "simulator/commands/predicting/propagation.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

constexpr double kRounding = 1e-9;  // relative, of a simulated time

}  // namespace

Uncertainty propagated(double predicted_s, std::vector<Uncertainty::Effect> effects, double scatter) {
  Uncertainty found;
  const auto of = [&](double seconds) { return std::log(seconds / predicted_s); };
  double below = scatter * scatter, above = below;
  for (Uncertainty::Effect& effect : effects) {
    const double better = of(effect.better_s), worse = of(effect.worse_s);
    if (std::max(std::abs(better), std::abs(worse)) <= kRounding) continue;
    (better < 0 ? below : above) += better * better;
    (worse < 0 ? below : above) += worse * worse;
    found.effects.push_back(std::move(effect));
  }
  const auto size = [](const Uncertainty::Effect& e) { return std::abs(e.worse_s - e.better_s); };
  std::stable_sort(found.effects.begin(), found.effects.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  found.low_s = predicted_s * std::exp(-kDeviationsOf90Percent * std::sqrt(below));
  found.high_s = predicted_s * std::exp(kDeviationsOf90Percent * std::sqrt(above));
  return found;
}

}  // namespace rehearse
