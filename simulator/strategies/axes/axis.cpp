#include "simulator/strategies/axes/axis.hpp"

#include <fmt/format.h>

#include <array>

namespace rehearse {

#define AXIS(entry) extern const AxisEntry entry;
#include "axes.inc"
#undef AXIS

std::span<const AxisEntry* const> axes() {
#define AXIS(entry) &entry,
  static constexpr std::array kAll = {
#include "axes.inc"
  };
#undef AXIS
  return kAll;
}

const AxisEntry* find_axis(std::string_view name) {
  for (const AxisEntry* axis : axes())
    if (axis->name == name) return axis;
  return nullptr;
}

bool in_mesh(const AxisEntry& axis, const StrategyChoice& choice) {
  return axis.always_in_mesh || axis.degree(choice) > 1;
}

std::vector<Factor> factors_of(const Scenario& scenario) {
  std::vector<Factor> factors;
  for (const AxisEntry* axis : axes())
    for (Factor& factor : axis->factors(scenario))
      if (factor.size > 1) factors.push_back(std::move(factor));
  return factors;
}

std::string degrees_text(const StrategyChoice& choice) {
  std::string text;
  for (const AxisEntry* axis : axes())
    if (in_mesh(*axis, choice))
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis->name, axis->degree(choice));
  return text;
}

Splits splits_of(const std::vector<Factor>& factors) {
  Splits splits;
  for (const Factor& factor : factors)
    for (std::size_t k = 0; k < kSegmentKinds; ++k) {
      const auto kind = static_cast<SegmentKind>(k);
      const Split& split = factor.table.of(kind);
      if (split.kind == Split::Kind::by) splits.multiply(kind, split.dim, factor.size);
    }
  return splits;
}

PassShape pass_shape(const Scenario& scenario) {
  const Training& training = scenario.training;
  return {training.micro_batch, training.sequence_length, training.precision, training.recompute,
          splits_of(factors_of(scenario))};
}

}  // namespace rehearse
