#include "simulator/commands/predicting/repeated_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/strategies/most_ops.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr double kLeastSaving = 1.5;  // all micro-batches, divided by those that are simulated

// Returns the numbers of micro-batches to simulate, one after the other, until two steps differ in one round.
// From about twice as many micro-batches as stages on, most pipelines are full for a while; those with very
// unequal stages, later. A round has as many micro-batches as a group has where the schedule runs them
// in groups. Otherwise it usually has one, but two where transfers that share links take turns.
std::vector<int> numbers_to_try(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const int stages = strategy.pipeline, all = scenario.microbatches;
  if (order_of(strategy.schedule).in_groups) {  // the rest is a last, smaller group
    const int group = StagePlace{.stages = stages, .group = strategy.microbatch_group}.group_size(),
              rest = all % group;
    return {2 * group + rest, 3 * group + rest, 4 * group + rest, 5 * group + rest};
  }
  if (strategy.virtual_stages > 1) return {2 * stages, 3 * stages, 4 * stages, 5 * stages};
  if (stages == 1) return {3, 4, 5, 6};
  const auto at_least = [&](int few, int round) { return few + (all - few) % round; };
  const int few = at_least(2 * stages, 2), more = at_least(4 * stages, 2),
            many = at_least(8 * stages, stages);
  return {few, few + 2, more, more + 2, many, many + stages};
}

// Not where every stage stores all micro-batches: nothing then holds a stage back, each runs through the
// forward passes at its own speed, and the longer the step is, the further apart they are.
bool may_repeat(const Scenario& scenario) {
  const bool retains_all = order_of(scenario.strategy.schedule).retains_all && scenario.strategy.pipeline > 1;
  return scenario.engine.fold && scenario.engine.fidelity != Fidelity::analytic && !retains_all;
}

struct Simulated {
  int microbatches = 0;
  Prediction prediction;
  double step_s() const { return prediction.metrics.step_time_s; }
};

bool same_memory(const Metrics& a, const Metrics& b) {
  const bool host = a.host_memory.has_value();
  return a.memory.total == b.memory.total && host == b.host_memory.has_value() &&
         (!host ||
          (a.host_memory->total == b.host_memory->total && a.host_memory->nvme == b.host_memory->nvme));
}

// Returns whether all further rounds are like that by which the two steps differ.
bool repeats(const Simulated& shorter, const Simulated& longer, const Scenario& scenario) {
  const int round = longer.microbatches - shorter.microbatches;
  return (scenario.microbatches - longer.microbatches) % round == 0 &&
         same_memory(shorter.prediction.metrics, longer.prediction.metrics) &&
         repeats_a_round(shorter.prediction.trace, longer.prediction.trace);
}

// Returns the longer of two predictions as that of the whole scenario, with the shorter one's trace.
Prediction extended(Simulated shorter, Simulated longer, const Scenario& scenario, bool exact) {
  Prediction whole = std::move(longer.prediction);
  const int round = longer.microbatches - shorter.microbatches,
            left = scenario.microbatches - longer.microbatches;
  whole.rounds = {.microbatches = longer.microbatches,
                  .round = round,
                  .repeats = static_cast<double>(left) / round,
                  .exact = exact,
                  .shorter = std::move(shorter.prediction.trace),
                  .shorter_path = {}};
  whole.metrics =
      whole_step(shorter.prediction.metrics, whole.metrics, whole.trace, *whole.rounds, *scenario.cluster);
  whole.scenario = scenario;
  const std::string simulated =
      fmt::format("{} of {} micro-batches were simulated; ", longer.microbatches, scenario.microbatches);
  whole.plan.notes.push_back(
      simulated +
      (exact ? fmt::format("{} further rounds of {} repeat the last one exactly.", left / round, round)
             : "the step of all is extrapolated."));
  return whole;
}

bool is_rough_enough(const Simulated& shorter, const Simulated& longer, int all, const RoundsEffort& effort) {
  const Metrics &a = shorter.prediction.metrics, &b = longer.prediction.metrics;
  const double rounds =
      static_cast<double>(all - longer.microbatches) / (longer.microbatches - shorter.microbatches);
  return same_ranks(shorter.prediction.trace, longer.prediction.trace) &&
         effort.roughly(b.step_time_s + rounds * (b.step_time_s - a.step_time_s),
                        b.memory.total + rounds * (b.memory.total - a.memory.total));
}

// Returns whether the last three of these steps grow by the same time per micro-batch, so that the step of
// `all` can be extrapolated. Contention between transfers can prevent this.
bool grows_evenly(const std::vector<Simulated>& simulated, int all) {
  if (simulated.size() < 3) return false;
  const Simulated &first = simulated[simulated.size() - 3], &second = simulated[simulated.size() - 2],
                  &third = simulated.back();
  const auto each_s = [](const Simulated& shorter, const Simulated& longer) {
    return (longer.step_s() - shorter.step_s()) / (longer.microbatches - shorter.microbatches);
  };
  const double last_s = each_s(second, third), left = all - third.microbatches;
  return same_ranks(second.prediction.trace, third.prediction.trace) &&
         std::abs(last_s - each_s(first, second)) * left <= kMostUneven * (third.step_s() + last_s * left);
}

// Returns the ops of the whole step, if `few` is its plan with `number` micro-batches.
double ops_of_all(const Plan& few, int number, const Scenario& scenario) {
  return ops_of(*few.schedule) * scenario.microbatches / number;
}

}  // namespace

void prepare_schedules(KnownSchedules& known, const Scenario& scenario) {
  const RoundsEffort effort;
  double sum = 0;
  int tried = 0;
  if (may_repeat(scenario) && most_ops_of(scenario) > effort.least_ops)
    for (const int number : numbers_to_try(scenario)) {
      sum += number;
      if (kLeastSaving * sum > scenario.microbatches) break;
      const Plan plan = known.plan_of(with_microbatches(scenario, number));
      if (plan.schedule->asynchrony || ops_of_all(plan, number, scenario) <= effort.least_ops) break;
      if (++tried == 2) return;  // usually, two are enough
    }
  known.plan_of(scenario);
}

std::optional<Prediction> predict_from_rounds(const Scenario& scenario, const WatchPrediction& watch,
                                              const RoundsEffort& effort, KnownSchedules* known) {
  if (scenario.engine.jitter.any()) return {};
  if (scenario.data.given) return {};  // schedules of few micro-batches would have several steps
  const int all = scenario.microbatches;
  const std::vector<int> numbers = numbers_to_try(scenario);
  const bool exactly = may_repeat(scenario);
  bool about = std::isfinite(effort.most_ops) && grows_steadily(scenario.strategy);
  const double most_microbatches = all / (about && effort.roughly ? 1 : kLeastSaving);
  if (numbers[0] + numbers[1] > most_microbatches || most_ops_of(scenario) <= effort.least_ops) return {};
  std::vector<Simulated> simulated;
  double sum = 0;
  std::int64_t events = 0;
  for (const int number : numbers) {
    sum += number;
    if (!exactly && !about) return {};
    if (sum > most_microbatches) break;
    try {
      Scenario fewer = with_microbatches(scenario, number);
      Plan plan = known ? known->plan_of(fewer) : write_schedule(fewer);
      const double ops = ops_of_all(plan, number, scenario);
      if (plan.schedule->asynchrony || ops <= effort.least_ops) return {};
      about = about && ops > effort.most_ops;
      fewer.checkpoint = {};  // checkpoints are added to the whole step
      simulated.push_back({number, known ? predict_checked(fewer, std::move(plan), Where::child, watch)
                                         : predict(fewer, std::move(plan), Where::child, watch)});
    } catch (const InputError&) {
      return {};  // the strategy does not go with so few micro-batches
    }
    Simulated& last = simulated.back();
    events += last.prediction.trace.engine.events;
    last.prediction.trace.engine.events = events;
    for (std::size_t i = simulated.size() - 1; exactly && i-- > 0;)
      if (repeats(simulated[i], last, scenario))
        return extended(std::move(simulated[i]), std::move(last), scenario, true);
    if (about && effort.roughly && simulated.size() == 2 && is_rough_enough(simulated[0], last, all, effort))
      return extended(std::move(simulated[0]), std::move(last), scenario, false);
  }
  if (!about || !grows_evenly(simulated, all)) return {};
  return extended(std::move(simulated[simulated.size() - 2]), std::move(simulated.back()), scenario, false);
}

}  // namespace rehearse
