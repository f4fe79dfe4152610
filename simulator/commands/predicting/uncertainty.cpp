#include "simulator/commands/predicting/uncertainty.hpp"

#include <cmath>
#include <utility>

#include "simulator/commands/predicting/propagation.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/predicting/uncertain_constants.hpp"

namespace rehearse {
namespace {

// If a constant, one deviation worse, changes the step by less than this, one deviation better is assumed to
// have the opposite effect. The error is negligible compared with kDeviationOfRuns.
constexpr double kSmallEffect = 0.003;

// Returns the step time for each constant, one deviation better (`direction` 1) or worse (-1).
std::vector<double> step_times_with(const Prediction& p, const std::vector<UncertainConstant>& constants,
                                    double direction, int jobs,
                                    const std::function<void(std::size_t, std::size_t)>& ended) {
  std::vector<std::function<double()>> runs;
  for (const UncertainConstant& constant : constants)
    runs.emplace_back([&p, &constant, direction] {
      Scenario scenario = p.scenario;
      constant.change(scenario, std::exp(direction * constant.deviation));
      return predict(std::move(scenario), Where::here).metrics.step_time_s;
    });
  return step_times(runs, jobs, ended);
}

}  // namespace

Uncertainty uncertainty(const Prediction& p, int jobs,
                        const std::function<void(std::size_t, std::size_t)>& ended) {
  const std::vector<UncertainConstant> constants = uncertain_constants(p);
  const double step_s = p.metrics.step_time_s;
  const std::vector<double> worse_s = step_times_with(p, constants, -1, jobs, ended);
  std::vector<double> better_s;
  std::vector<std::size_t> places;  // indices of the constants with larger effects
  std::vector<UncertainConstant> larger;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    better_s.push_back(step_s * step_s / worse_s[i]);
    if (std::abs(std::log(worse_s[i] / step_s)) <= kSmallEffect) continue;
    places.push_back(i);
    larger.push_back(constants[i]);
  }
  const std::vector<double> simulated_s = step_times_with(p, larger, 1, jobs, ended);
  for (std::size_t i = 0; i < places.size(); ++i) better_s[places[i]] = simulated_s[i];

  std::vector<Uncertainty::Effect> effects;
  for (std::size_t i = 0; i < constants.size(); ++i)
    effects.push_back(
        {constants[i].name, constants[i].basis, constants[i].deviation, better_s[i], worse_s[i]});
  return propagated(step_s, std::move(effects), kDeviationOfRuns);
}

}  // namespace rehearse
