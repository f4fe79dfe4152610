#include "simulator/strategies/axes/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/kernels.hpp"

namespace rehearse {

#define AXIS(entry) extern const AxisEntry entry;
#include "axes.inc"
#undef AXIS

std::span<const AxisEntry* const> axes() {
#define AXIS(entry) &(entry),
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
  return !axis.overlay && (axis.always_in_mesh || axis.degree(choice) > 1);
}

std::vector<Axis> worker_axes(const StrategyChoice& choice) {
  std::vector<Axis> mesh;
  const auto add = [&](const AxisEntry* entry) {
    const bool known =
        entry && std::any_of(mesh.begin(), mesh.end(), [&](const Axis& a) { return a.name == entry->name; });
    if (entry && !known && in_mesh(*entry, choice))
      mesh.push_back({std::string(entry->name), entry->degree(choice)});
  };
  const std::vector<std::string>& named = choice.placement;
  const std::span<const AxisEntry* const> all = axes();
  for (auto entry = all.rbegin(); entry != all.rend(); ++entry)
    if (!(*entry)->always_in_mesh && std::find(named.begin(), named.end(), (*entry)->name) == named.end())
      add(*entry);
  for (const std::string& name : named) add(find_axis(name));
  for (const AxisEntry* entry : all) add(entry);
  return mesh;
}

int weight_copies(const StrategyChoice& choice) {
  int copies = 1;
  for (const AxisEntry* axis : axes())
    if (axis->same_weights) copies *= axis->degree(choice);
  return copies;
}

std::vector<Factor> factors_of(const Scenario& scenario) {
  std::vector<Factor> factors;
  for (const AxisEntry* axis : axes())
    for (const Factor& factor : axis->factors(scenario))
      if (factor.size > 1) factors.push_back(factor);
  for (const AxisEntry* axis : axes())
    if (axis->overlay) axis->overlay(scenario, factors);
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
  const std::vector<Factor> factors = factors_of(scenario);
  PassShape shape{training.micro_batch, training.sequence_length, training.precision, training.recompute,
                  splits_of(factors)};
  // Ranks on the factors of data parallelism each have complete micro-batches of their own.
  shape.micro_batch *= shape.splits.of(SegmentKind::norm, Dim::batch);
  if (std::any_of(factors.begin(), factors.end(), [](const Factor& factor) { return factor.ring; }))
    shape.ring = {scenario.strategy.context, scenario.strategy.zigzag};
  shape.attention = training.attention;
  if (scenario.strategy.capacity_factor > 0) shape.expert_capacity = scenario.strategy.capacity_factor;
  shape.accumulation_bytes = scenario.framework.accumulation_bytes.value;
  shape.predicted_tokens = training.predicted_tokens;
  shape.kernels = scenario.framework.kernels();
  // A fused dispatch puts rows into expert order where they arrive; an all-to-all delivers them ordered by
  // rank.
  if (scenario.framework.sorts_received_rows && scenario.strategy.expert > 1 &&
      scenario.strategy.expert_dispatch == ExpertDispatch::experts)
    shape.kernels.routed_copies = 1;
  shape.loss_bytes = scenario.framework.loss_bytes.value;
  if (training.fused_loss) {
    shape.loss_bytes = fused_loss_bytes(training.precision);
    shape.kernels.loss_peak_bytes = kFusedLossPeakBytes;
  }
  return shape;
}

}  // namespace rehearse
