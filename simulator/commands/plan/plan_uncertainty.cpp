#include "simulator/commands/plan/plan_uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "simulator/commands/predicting/propagation.hpp"
#include "simulator/commands/predicting/uncertain_constants.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/planner/plan_bounds.hpp"
#include "simulator/report/json_reader.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {
namespace {

double bound_s(const Scenario& scenario, const PlanChoice& plan) {
  PlanBounds bounds(scenario, std::nullopt);
  return bounds.plan_bound_s(bounds.walk(plan.core), plan.gradients);
}

// Returns the matrix product on which a plan spends the most time; null if it has none.
const Kernel* longest_product(const Schedule& schedule, const Device& device, Precision precision) {
  const Kernel* longest = nullptr;
  double most_s = 0;
  for (const Work& work : schedule.works)
    for (const Kernel& kernel : work.kernels) {
      if (kernel.kind != Kernel::Kind::gemm) continue;
      const double seconds = kernel_time_s(kernel, device, precision);
      if (seconds <= most_s) continue;
      most_s = seconds;
      longest = &kernel;
    }
  return longest;
}

// Returns commands that predict what the constant affects, with the plan's own sizes.
std::vector<std::string> measurements(const PlanQuestion& question, const PlanChoice& plan,
                                      const std::string& constant) {
  const Scenario& base = question.scenario;
  const Device& device = base.cluster->node().device;
  const auto has = [&](const char* part) { return constant.find(part) != std::string::npos; };
  const std::string precision(kPrecisionNames[static_cast<std::size_t>(base.training.precision)]);
  const auto* transformer = std::get_if<Transformer>(&base.model.shape);
  const double rows = plan.core.micro_batch * tokens_per_sample(base.model, base.training.sequence_length) /
                      plan.core.context;
  if (has("gemm")) {
    Scenario scenario = scenario_of(question, plan);
    const int few = scenario.strategy.pipeline;
    scenario.training.global_batch *= static_cast<double>(few) / scenario.microbatches;
    scenario.microbatches = few;
    const Plan written = write_schedule(scenario);
    if (const Kernel* product = longest_product(*written.schedule, device, base.training.precision))
      return {fmt::format("rehearse kernel gemm {:.0f} {:.0f} {:.0f} --device {} --precision {}", product->m,
                          product->n, product->k, device.name, precision)};
  }
  if ((has("attention") || has("flash")) && transformer) {
    const double width =
        transformer->head_dim > 0 ? transformer->head_dim : transformer->hidden / transformer->heads;
    return {fmt::format("rehearse kernel attention {} {:.0f} {:.0f} {:.0f} --attention {}{} --device {}",
                        plan.core.micro_batch, transformer->heads / plan.core.tensor,
                        tokens_per_sample(base.model, base.training.sequence_length), width,
                        kAttentionKernelsNames[static_cast<std::size_t>(base.training.attention)],
                        transformer->causal ? " --causal" : "", device.name)};
  }
  if (has("memory") && transformer)
    return {fmt::format("rehearse kernel norm {:.0f} {:.0f} --device {}", rows, transformer->hidden,
                        device.name)};
  if (has("inside nodes"))
    return {fmt::format("rehearse collective all-gather --cluster {} --nodes 1", base.cluster->name)};
  if (has("between nodes") || has("network"))
    return {fmt::format("rehearse collective all-reduce --cluster {} --nodes 2", base.cluster->name)};
  return {};
}

}  // namespace

std::vector<PlanEffect> plan_effects(const PlanQuestion& question, const PlanChoice& plan) {
  const Scenario& scenario = question.scenario;
  Scenario one = scenario_of(question, plan);
  const int few = std::min(one.microbatches, one.strategy.pipeline);
  one.training.global_batch *= static_cast<double>(few) / one.microbatches;
  one.microbatches = few;
  const Plan written = write_schedule(one);
  const double own_s = bound_s(scenario, plan);
  std::vector<PlanEffect> effects;
  for (const UncertainConstant& constant :
       uncertain_constants(UncertainInputs{scenario, written.schedule->works})) {
    Scenario changed = scenario;
    constant.change(changed, std::exp(-constant.deviation));
    const double effect = std::log(bound_s(changed, plan) / own_s);
    if (effect != 0) effects.push_back({constant.name, effect});
  }
  return effects;
}

std::string to_line(const std::vector<PlanEffect>& effects) {
  nlohmann::json json = nlohmann::json::array();
  for (const PlanEffect& effect : effects) json.push_back({effect.constant, effect.effect});
  return json_line(json);
}

std::vector<PlanEffect> plan_effects(const std::string& line) {
  std::vector<PlanEffect> effects;
  for (const nlohmann::json& one : json_in_line(line))
    effects.push_back({one.at(0).get<std::string>(), one.at(1).get<double>()});
  return effects;
}

std::pair<double, double> interval_s(double step_s, const std::vector<PlanEffect>& effects) {
  double squares = kDeviationOfRuns * kDeviationOfRuns;
  for (const PlanEffect& effect : effects) squares += effect.effect * effect.effect;
  const double factor = std::exp(kDeviationsOf90Percent * std::sqrt(squares));
  return {step_s / factor, step_s * factor};
}

PlanDecision decide(const PlanQuestion& question, const PlanChoice& first, double first_s,
                    const std::vector<PlanEffect>& first_effects, double second_s,
                    const std::vector<PlanEffect>& second_effects) {
  std::map<std::string, double> apart;
  for (const PlanEffect& effect : first_effects) apart[effect.constant] += effect.effect;
  for (const PlanEffect& effect : second_effects) apart[effect.constant] -= effect.effect;
  PlanDecision decision;
  decision.difference = std::log(second_s / first_s);
  double squares = 0, most = 0;
  for (const auto& [constant, effect] : apart) {
    squares += effect * effect;
    if (std::abs(effect) <= most) continue;
    most = std::abs(effect);
    decision.constant = constant;
  }
  decision.uncertainty = kDeviationsOf90Percent * std::sqrt(squares);
  if (decision.open() && !decision.constant.empty())
    decision.measure = measurements(question, first, decision.constant);
  return decision;
}

}  // namespace rehearse
