#include "simulator/commands/uncertainty.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/commands/side_by_side.hpp"
#include "simulator/commands/uncertain_constants.hpp"

namespace rehearse {
namespace {

constexpr double kDeviationsOf90Percent = 1.645;

// Runs of one plan on one machine scatter, too. The same configuration measured twice differs by 4 to 6 %
// (BLOOM, bigscience-workshop/bigscience train/tr11-176B-ml/chronicles.md) and 2 to 7 % (releases of NeMo):
// standard deviations of 1.5 to 3 %.
constexpr double kDeviationOfRuns = 0.025;

}  // namespace

Uncertainty uncertainty(const Prediction& p, int jobs,
                        const std::function<void(std::size_t, std::size_t)>& ended) {
  const std::vector<UncertainConstant> constants = uncertain_constants(p);
  std::vector<std::function<double()>> runs;
  for (const UncertainConstant& constant : constants)
    for (const double direction : {1.0, -1.0})
      runs.emplace_back([&p, &constant, direction] {
        Scenario scenario = p.scenario;
        constant.change(scenario, std::exp(direction * constant.deviation));
        return predict(std::move(scenario), Where::here).metrics.step_time_s;
      });
  const std::vector<double> times_s = step_times(runs, jobs, ended);

  const double step_s = p.metrics.step_time_s;
  Uncertainty found;
  double below = kDeviationOfRuns * kDeviationOfRuns, above = below;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const Uncertainty::Effect effect{constants[i].name, constants[i].basis, constants[i].deviation,
                                     times_s[2 * i], times_s[2 * i + 1]};
    const double better = std::log(effect.better_s / step_s), worse = std::log(effect.worse_s / step_s);
    (better < 0 ? below : above) += better * better;
    (worse < 0 ? below : above) += worse * worse;
    if (effect.better_s != step_s || effect.worse_s != step_s) found.effects.push_back(effect);
  }
  const auto size = [](const Uncertainty::Effect& e) { return std::abs(e.worse_s - e.better_s); };
  std::stable_sort(found.effects.begin(), found.effects.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  found.low_s = step_s * std::exp(-kDeviationsOf90Percent * std::sqrt(below));
  found.high_s = step_s * std::exp(kDeviationsOf90Percent * std::sqrt(above));
  return found;
}

}  // namespace rehearse
