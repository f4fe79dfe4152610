#include "simulator/commands/predicting/fitting_framework.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/scenario/reading/choose_framework.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

constexpr std::int64_t kMostEventsToRepeat = 250'000;  // about a second of one core
constexpr double kLeastChange = 0.03;

}  // namespace

bool has_framework(const Scenario& scenario) {
  return !scenario.framework.name.empty() ||
         std::any_of(scenario.settings.begin(), scenario.settings.end(),
                     [](const auto& setting) { return setting.first == "training.framework"; });
}

void tell_fitting_frameworks(Prediction& prediction, const WatchSimulation& watch) {
  const Scenario& scenario = prediction.scenario;
  if (scenario.text.empty() || has_framework(scenario) || scenario.engine.protocol.kind != Protocol::nccl ||
      prediction.trace.engine.events > kMostEventsToRepeat)
    return;
  const std::vector<std::string> names =
      fitting_frameworks({scenario.model, scenario.cluster->node().device, scenario.training.precision}, "");
  if (names.empty()) return;
  const std::string assignment = "training.framework=" + names.front();
  try {
    const Prediction with =
        predict(read_scenario_text(scenario.text, scenario.name, {assignment}), Where::child, {watch, {}});
    const double factor = with.metrics.step_time_s / prediction.metrics.step_time_s;
    if (std::abs(factor - 1) <= kLeastChange) return;
    const std::vector<std::string> others(names.begin() + 1, names.end());
    prediction.plan.notes.push_back(fmt::format(
        "No framework's costs are counted: with --set {} the step takes {:.2f} x{}.", assignment, factor,
        others.empty() ? "" : fmt::format(" (others that fit: {})", fmt::join(others, ", "))));
  } catch (const InputError&) {
    // The framework's own keys do not go with the scenario's.
  }
}

}  // namespace rehearse
