#include "simulator/report/uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/report/format.hpp"

namespace rehearse {

std::string uncertainty_sentence(const Uncertainty& uncertainty, double predicted_s) {
  const TimeScale time(uncertainty.high_s);
  std::string text = fmt::format(
      "Uncertainty: nine of ten measurements are expected between {} and {} ({} to {}).",
      time(uncertainty.low_s), time(uncertainty.high_s), signed_percent(uncertainty.low_s / predicted_s - 1),
      signed_percent(uncertainty.high_s / predicted_s - 1));
  constexpr std::size_t kTold = 4;
  const std::size_t told = std::min(kTold, uncertainty.effects.size());
  for (std::size_t i = 0; i < told; ++i) {
    const Uncertainty::Effect& effect = uncertainty.effects[i];
    text += fmt::format("{}{} ({:.0f} % uncertain: {} to {})", i == 0 ? " Most of it comes from " : ", ",
                        effect.constant, 100 * effect.deviation,
                        signed_percent(effect.better_s / predicted_s - 1),
                        signed_percent(effect.worse_s / predicted_s - 1));
  }
  return told > 0 ? text + "." : text;
}

}  // namespace rehearse
