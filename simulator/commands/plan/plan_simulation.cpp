#include "simulator/commands/plan/plan_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "models/text/error.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/costs/reserved.hpp"
#include "simulator/report/json.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/orders/order.hpp"
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
  if (p.rounds) gradients_s = p.rounds->extended(on_path_for_gradients_s(p.rounds->shorter), gradients_s);
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

// Extrapolates two simulations, of `few` and of `more` micro-batches, linearly to `all` micro-batches.
void extend(PlanFigures& figures, const Metrics& shorter, const Metrics& longer, double few, double more,
            double all) {
  const Extrapolation extended{few, more, all};
  const Breakdown &a = shorter.breakdown, &b = longer.breakdown;
  take(figures, longer);
  figures.step_time_s = extended(shorter.step_time_s, longer.step_time_s);
  const double share = longer.step_time_s / figures.step_time_s * all / more;
  figures.samples_per_s *= share;
  figures.tokens_per_s *= share;
  figures.mfu *= share;
  figures.compute_s = extended(a.compute_s, b.compute_s);
  figures.communication_s = extended(a.exposed_communication_s, b.exposed_communication_s);
  figures.bubble_s = extended(a.pipeline_bubble_s, b.pipeline_bubble_s);
  figures.other_s = figures.step_time_s - figures.compute_s - figures.communication_s - figures.bubble_s;
  // Orders that hold all micro-batches need more memory for each further one.
  figures.memory_bytes = extended(shorter.memory.total, longer.memory.total);
  figures.simulated_microbatches = static_cast<int>(more);
}

// Returns whether three steps, whose numbers of micro-batches increase by the same amount, grow evenly. If
// the last micro-batches take as long as those before them, `rounds` times as many further ones can be
// extrapolated. Contention between transfers can prevent this.
bool grows_evenly(const Metrics& first, const Metrics& second, const Metrics& third, double rounds) {
  constexpr double kMostUneven = 0.005;  // of the step
  const double before_s = second.step_time_s - first.step_time_s,
               last_s = third.step_time_s - second.step_time_s;
  return std::abs(last_s - before_s) * rounds <= kMostUneven * (third.step_time_s + last_s * rounds);
}

// A plan whose step exceeds its bound by this factor is far from the best ones, so its step may be less
// exact.
constexpr double kFar = 1.1;

// Returns the number of micro-batches for which a shortened step still has a steady part of the pipeline.
int few_microbatches(const Scenario& scenario) {
  constexpr int kRounds = 3;
  return kRounds * scenario.strategy.pipeline * (scenario.strategy.pipeline < 4 ? 2 : 1);
}

// Simulates `few` and `more` micro-batches and, if the plan fits and its step is near its bound, also 2 * few
// - more. If steps grow unevenly, tries three times as many of each; returns false if these grow unevenly,
// too, or are not fewer than all. Simulates in children, since a process in which a simulation has run cannot
// have children that simulate.
bool extend_evenly(PlanFigures& figures, const Scenario& scenario, Plan small, int few, int more,
                   double bound_s, const MemoryLimit& memory) {
  const int all = scenario.microbatches;
  for (const int times : {1, 3}) {
    const int shorter_count = times * few, longer_count = times * more,
              least_count = 2 * shorter_count - longer_count;
    if (longer_count >= all) return false;
    // Only the first iteration moves `small`. NOLINTBEGIN(bugprone-use-after-move)
    const Prediction shorter = predict(with_microbatches(scenario, shorter_count), Where::child),
                     longer = times == 1
                                  ? predict(with_microbatches(scenario, more), std::move(small), Where::child)
                                  : predict(with_microbatches(scenario, longer_count), Where::child);
    // NOLINTEND(bugprone-use-after-move)
    extend(figures, shorter.metrics, longer.metrics, shorter_count, longer_count, all);
    figures.without_gradients_s =
        without_gradients_s(longer) + figures.step_time_s - longer.metrics.step_time_s;
    if ((bound_s > 0 && figures.step_time_s > kFar * bound_s) || !memory.fits(figures)) return true;
    const Prediction least = predict(with_microbatches(scenario, least_count), Where::child);
    if (grows_evenly(least.metrics, shorter.metrics, longer.metrics,
                     static_cast<double>(all - longer_count) / (longer_count - shorter_count)))
      return true;
  }
  return false;
}

}  // namespace

PlanFigures figures_of(const Prediction& prediction) {
  PlanFigures figures;
  take(figures, prediction.metrics);
  figures.reserved_bytes = reserved_bytes(*prediction.plan.schedule, prediction.plan.endpoints,
                                          *prediction.scenario.cluster, prediction.scenario.framework)
                               .total();
  figures.without_gradients_s = without_gradients_s(prediction);
  figures.result = json_text(to_json(prediction.result()));
  return figures;
}

PlanFigures simulate_plan(const PlanQuestion& question, const PlanChoice& plan, const MemoryLimit& memory,
                          const SimulationEffort& effort, Where where) {
  PlanFigures figures;
  try {
    const Scenario scenario = scenario_of(question, plan);
    const int all = scenario.microbatches, few = few_microbatches(scenario),
              more = few + std::max(scenario.strategy.pipeline, 2);
    Plan small = write_schedule(all > more ? with_microbatches(scenario, more) : scenario);
    figures.memory_bytes = peak_worker_bytes(*small.schedule);
    figures.reserved_bytes =
        reserved_bytes(*small.schedule, small.endpoints, *scenario.cluster, scenario.framework).total();
    if (!memory.fits(figures)) {
      figures.status = PlanFigures::Status::too_large;
      return figures;
    }
    const bool many = effort.most_ops > 0 && all > more && grows_steadily(scenario.strategy) &&
                      ops_of(*small.schedule) * all / more > effort.most_ops && !small.schedule->asynchrony;
    if (!many) {
      figures =
          figures_of(all > more ? predict(scenario, where) : predict(scenario, std::move(small), where));
    } else if (!extend_evenly(figures, scenario, std::move(small), few, more, effort.bound_s, memory)) {
      figures = figures_of(predict(scenario, where));
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
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

PlanFigures plan_figures(const std::string& line) {
  PlanFigures figures;
  try {
    const nlohmann::json json = nlohmann::json::parse(line);
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
