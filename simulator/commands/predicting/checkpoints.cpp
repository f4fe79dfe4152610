#include "simulator/commands/predicting/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/text/error.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/op_count.hpp"

namespace rehearse {
namespace {

constexpr int kMostRounds = 16;        // of steps beside which a checkpoint is written
constexpr double kMostCycleOps = 2e6;  // of all of them, by rank class
constexpr double kShorter = 0.75;      // written share, if a checkpoint was not written in time
constexpr int kTries = 4;

// A scenario whose steps are compared with and without a checkpoint, and their times without.
struct Step {
  Scenario scenario;
  double seconds = 0;       // of an optimizer step
  int optimizer_steps = 1;  // of a repetition of its schedule
  double network_bytes = 0;
  double repetition_s() const { return seconds * optimizer_steps; }
};

// Training stops for a blocking checkpoint, so that it does not matter how long the step is.
int enough_microbatches(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const bool any = scenario.checkpoint.mode == CheckpointMode::blocking && !scenario.data.given;
  const int few = 2 * strategy.pipeline * strategy.virtual_stages;
  return any && few < scenario.microbatches ? few : scenario.microbatches;
}

Step step_of(const Prediction& p, int microbatches, const WatchPrediction& watch) {
  Step step{p.scenario, p.metrics.step_time_s, p.plan.schedule->optimizer_steps,
            p.metrics.network_bytes_per_step};
  if (microbatches == p.scenario.microbatches && !p.scenario.engine.jitter.any()) return step;
  step.scenario = with_microbatches(p.scenario, microbatches);
  step.scenario.engine.jitter = {};
  Scenario without = step.scenario;
  without.checkpoint = {};
  const Prediction base = predict(std::move(without), Where::child, watch, Detail::every_span);
  step.seconds = base.metrics.step_time_s;
  step.network_bytes = base.metrics.network_bytes_per_step;
  return step;
}

Step comparable_step(const Prediction& p, const WatchPrediction& watch, StepsBeside steps) {
  const int few = steps == StepsBeside::whole ? p.scenario.microbatches : enough_microbatches(p.scenario);
  if (few == p.scenario.microbatches) return step_of(p, few, watch);
  try {
    return step_of(p, few, watch);
  } catch (const InputError&) {
    return step_of(p, p.scenario.microbatches, watch);  // the strategy does not go with so few micro-batches
  }
}

// Returns how many repetitions to simulate for a checkpoint that takes at least these times.
CheckpointCycle first_cycle(const Step& step, const Prediction& p) {
  const Checkpoint& checkpoint = p.scenario.checkpoint;
  const CheckpointBytes& bytes = p.plan.checkpoint;
  const int between = std::max(1, checkpoint.every / step.optimizer_steps);
  CheckpointCycle cycle;
  if (checkpoint.mode == CheckpointMode::blocking) return cycle;
  const double needed = bytes.least_write_s / step.repetition_s() + 2;
  const double cheap = kMostCycleOps / std::max(1.0, ops_of(*p.plan.schedule));
  const int most = std::clamp(static_cast<int>(cheap), 2, kMostRounds);
  cycle.rounds = static_cast<int>(
      std::min({std::ceil(needed), static_cast<double>(most), static_cast<double>(between)}));
  cycle.repeats = cycle.rounds == between;
  if (!cycle.repeats && needed > cycle.rounds)
    cycle.written_share = (cycle.rounds - 1.5) * step.repetition_s() / bytes.least_write_s;
  cycle.written_share = std::clamp(cycle.written_share, 1e-6, 1.0);
  return cycle;
}

struct Simulated {
  Plan plan;
  Trace trace;
  Metrics metrics;
  CheckpointTimes times;
};

// Steps that follow one another take less time than a first one, so that the cycle is simulated twice in a
// row.
Simulated simulate_cycle(const Step& step, const CheckpointCycle& cycle, const WatchPrediction& watch) {
  Simulated simulated;
  simulated.plan = write_schedule(step.scenario, cycle);
  Scenario without = step.scenario;  // the plan has the checkpoint
  without.steps = cycle.writes ? 1 : 2;
  without.checkpoint = {};
  Prediction p = predict(std::move(without), std::move(simulated.plan), Where::child, watch);
  simulated.plan = std::move(p.plan);
  simulated.trace = std::move(p.trace);
  simulated.metrics = std::move(p.metrics);
  if (cycle.writes) simulated.times = checkpoint_times(simulated.trace);
  return simulated;
}

// Returns the seconds of the cycle's rounds without a checkpoint.
double trained_s(const Step& step, CheckpointCycle cycle, const WatchPrediction& watch) {
  if (cycle.rounds == 1) return step.repetition_s();
  cycle.writes = false;
  return simulate_cycle(step, cycle, watch).metrics.step_time_s * cycle.rounds * step.optimizer_steps;
}

CheckpointCost cost_of(const Simulated& simulated, const Step& step, const CheckpointCycle& cycle,
                       double trained_s, int every) {
  const double all_s = simulated.metrics.step_time_s * cycle.rounds * step.optimizer_steps;
  CheckpointCost cost;
  cost.stall_s = std::max(0.0, all_s - trained_s);
  cost.blocked_s = simulated.times.blocked_s;
  cost.written_s = simulated.times.written_s;
  if (cycle.written_share < 1) {  // the rest is written beside steps like these
    const double beside_s = std::max(0.0, cost.stall_s - cost.blocked_s);
    cost.stall_s += beside_s * (1 / cycle.written_share - 1);
    cost.written_s = cost.blocked_s + (cost.written_s - cost.blocked_s) / cycle.written_share;
  }
  const double steps_s = every * step.seconds;
  cost.behind = cost.written_s > (steps_s + cost.stall_s) * (1 - 1e-9);
  if (cost.behind) cost.stall_s = std::max(cost.stall_s, cost.written_s - steps_s);
  return cost;
}

}  // namespace

void add_checkpoints(Prediction& p, const WatchPrediction& watch, StepsBeside steps) {
  const Checkpoint& checkpoint = p.scenario.checkpoint;
  if (!checkpoint.given) return;
  const Step step = comparable_step(p, watch, steps);
  CheckpointCycle cycle = first_cycle(step, p);
  Simulated simulated = simulate_cycle(step, cycle, watch);
  const auto in_time = [&] {
    return cycle.repeats || checkpoint.mode == CheckpointMode::blocking ||
           simulated.times.written_s <= simulated.times.trained_s;
  };
  for (int tries = 1; tries < kTries && !in_time(); ++tries) {
    cycle.written_share *= kShorter;
    simulated = simulate_cycle(step, cycle, watch);
  }
  CheckpointCost cost = cost_of(simulated, step, cycle, trained_s(step, cycle, watch), checkpoint.every);
  p.metrics.network_bytes_per_step += (simulated.metrics.network_bytes_per_step - step.network_bytes) *
                                      cycle.rounds * step.optimizer_steps / cycle.written_share /
                                      checkpoint.every;
  add_checkpoint(p.metrics, cost, checkpoint.every);
  p.metrics.checkpoint->interval_s = checkpoint.every * p.metrics.step_time_s;
  p.trace.engine.events += simulated.trace.engine.events;
  p.checkpoint = CheckpointRun{cycle, std::move(simulated.plan), std::move(simulated.trace),
                               std::move(simulated.metrics)};
}

}  // namespace rehearse
