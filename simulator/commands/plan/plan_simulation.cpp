#include "simulator/commands/plan/plan_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "models/text/error.hpp"
#include "simulator/commands/predicting/repeated_rounds.hpp"
#include "simulator/costs/reserved.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/json_reader.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/trace/causes.hpp"
#include "simulator/trace/critical_path.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

bool is_of_gradients(const Op& op) {
  return op.pass == Pass::gradient_sync || op.pass == Pass::optimizer ||
         op.purpose == Purpose::gradient_sync || op.purpose == Purpose::weights;
}

// Returns how long the critical path is in gradients, updates and delays by collectives.
double on_path_for_gradients_s(const Trace& trace) {
  double seconds = 0;
  for (const PathSegment& segment : critical_path(trace, 0)) {
    const double length_s = segment.end_s - segment.begin_s;
    if (segment.row == kNoRow || is_of_gradients(trace.op_of(segment.row)))
      seconds += length_s;
    else if (!trace.spans.slowed_s.empty())
      seconds += std::min(length_s, trace.spans.slowed_s[segment.row]);
  }
  return seconds;
}

double without_gradients_s(const Prediction& p) {
  if (p.metrics.asynchrony) return 0;
  double gradients_s = on_path_for_gradients_s(p.trace);
  if (p.rounds && p.rounds->exact)
    gradients_s = p.rounds->extended(on_path_for_gradients_s(p.rounds->shorter), gradients_s);
  return std::max(0.0, p.metrics.step_time_s - gradients_s / p.plan.schedule->optimizer_steps);
}

void take(PlanFigures& figures, const Metrics& metrics) {
  figures.status = PlanFigures::Status::ok;
  figures.step_time_s = metrics.step_time_s;
  figures.samples_per_s = metrics.samples_per_s;
  figures.tokens_per_s = metrics.tokens_per_s;
  figures.mfu = metrics.mfu;
  figures.compute_s = metrics.breakdown.compute_s;
  figures.communication_s = metrics.breakdown.exposed_communication_s;
  figures.bubble_s = metrics.breakdown.pipeline_bubble_s;
  figures.other_s = metrics.breakdown.other_s + metrics.breakdown.data_stall_s;
  figures.memory_bytes = metrics.memory.total;
  figures.fullest = metrics.memory.fullest;
}

// A plan whose step exceeds its bound by this factor is far from the best ones, so its step may be less
// exact.
constexpr double kFar = 1.1;

}  // namespace

PlanFigures figures_of(const Prediction& prediction) {
  PlanFigures figures;
  take(figures, prediction.metrics);
  figures.reserved_bytes = reserved_bytes(*prediction.plan.schedule, prediction.plan.endpoints,
                                          *prediction.scenario.cluster, prediction.scenario.framework)
                               .total();
  figures.without_gradients_s = without_gradients_s(prediction);
  if (prediction.rounds && !prediction.rounds->exact)
    figures.simulated_microbatches = prediction.rounds->microbatches;
  else
    figures.result = json_text(to_json(prediction.result()));
  return figures;
}

PlanFigures simulate_plan(const PlanQuestion& question, const PlanChoice& plan, const MemoryLimit& memory,
                          const SimulationEffort& effort, Where where) {
  PlanFigures figures;
  try {
    const Scenario scenario = scenario_of(question, plan);
    // With twice as many micro-batches as stages, a pipeline is full.
    const int all = scenario.microbatches, few = std::min(all, 2 * scenario.strategy.pipeline);
    Plan small = write_schedule(few < all ? with_microbatches(scenario, few) : scenario);
    figures.memory_bytes = peak_worker_bytes(*small.schedule);
    figures.reserved_bytes =
        reserved_bytes(*small.schedule, small.endpoints, *scenario.cluster, scenario.framework).total();
    if (!memory.fits(figures)) {
      figures.status = PlanFigures::Status::too_large;
      return figures;
    }
    if (few == all) {
      figures = figures_of(predict(scenario, std::move(small), where));
    } else {
      const double reserved_bytes = memory.reserve_bytes.value_or(figures.reserved_bytes);
      RoundsEffort rounds;
      if (effort.most_ops > 0) rounds = {std::min(kMostOpsInFull, effort.most_ops), effort.most_ops};
      if (effort.bound_s > 0)
        rounds.roughly = [&](double step_time_s, double memory_bytes) {
          return step_time_s > kFar * effort.bound_s ||
                 (memory.capacity_bytes > 0 && memory_bytes + reserved_bytes > memory.capacity_bytes);
        };
      figures = figures_of(predict(scenario, where, {}, rounds));
    }
    if (!memory.fits(figures)) figures.status = PlanFigures::Status::too_large;
  } catch (const InputError& error) {
    figures.status = PlanFigures::Status::refused;
    figures.error = error.what();
  } catch (const std::exception& error) {
    figures.status = PlanFigures::Status::failed;
    figures.error = error.what();
  }
  return figures;
}

namespace {

// Calls `field` for each field, in the order of the line.
template <class Figures, class Field>
void each_field(Figures& f, Field field) {
  field(f.error);
  for (auto* number :
       {&f.step_time_s, &f.samples_per_s, &f.tokens_per_s, &f.mfu, &f.compute_s, &f.communication_s,
        &f.bubble_s, &f.other_s, &f.memory_bytes, &f.reserved_bytes, &f.without_gradients_s})
    field(*number);
  field(f.fullest);
  field(f.simulated_microbatches);
  field(f.result);
}

}  // namespace

std::string to_line(const PlanFigures& figures) {
  nlohmann::json json = {kPlanStatusNames[static_cast<std::size_t>(figures.status)]};
  each_field(figures, [&](const auto& value) { json.push_back(value); });
  return json_line(json);
}

PlanFigures plan_figures(const std::string& line) {
  PlanFigures figures;
  try {
    const nlohmann::json json = json_in_line(line);
    const auto status =
        std::find(kPlanStatusNames.begin(), kPlanStatusNames.end(), json.at(0).get<std::string>());
    if (status == kPlanStatusNames.end()) throw std::invalid_argument("not a plan's status");
    figures.status = static_cast<PlanFigures::Status>(status - kPlanStatusNames.begin());
    std::size_t place = 0;
    each_field(figures, [&](auto& value) { json.at(++place).get_to(value); });
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(error.what());
  }
  return figures;
}

}  // namespace rehearse
