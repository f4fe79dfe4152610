#include "simulator/commands/predicting/repeated_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr double kLeastSaving = 1.5;  // all micro-batches, divided by those that are simulated

// Returns the numbers of micro-batches to simulate, one after the other, until two steps differ in one round.
// From about twice as many micro-batches as stages on, most pipelines are full for a while; those with very
// unequal stages, later. A round has as many micro-batches as there are stages where the schedule runs them
// in such groups. Otherwise it usually has one, but two where transfers that share links take turns.
std::vector<int> numbers_to_try(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const int stages = strategy.pipeline, all = scenario.microbatches;
  if (order_of(strategy.schedule).whole_groups || strategy.virtual_stages > 1)
    return {2 * stages, 3 * stages, 4 * stages, 5 * stages};
  if (stages == 1) return {3, 4, 5, 6};
  const auto at_least = [&](int few, int round) { return few + (all - few) % round; };
  const int few = at_least(2 * stages, 2), more = at_least(4 * stages, 2),
            many = at_least(8 * stages, stages);
  return {few, few + 2, more, more + 2, many, many + stages};
}

bool same_memory(const Metrics& a, const Metrics& b) {
  const bool host = a.host_memory.has_value();
  return a.memory.total == b.memory.total && host == b.host_memory.has_value() &&
         (!host ||
          (a.host_memory->total == b.host_memory->total && a.host_memory->nvme == b.host_memory->nvme));
}

// Makes the longer of two predictions that of the whole scenario, if that differs from it in further rounds;
// takes the shorter one's trace.
bool extend(Prediction& longer, int microbatches, Prediction& shorter, int fewer, const Scenario& scenario) {
  const int round = microbatches - fewer, left = scenario.microbatches - microbatches;
  if (left % round != 0 || !same_memory(shorter.metrics, longer.metrics) ||
      !repeats_a_round(shorter.trace, longer.trace))
    return false;
  longer.rounds = {microbatches, round, static_cast<double>(left) / round, std::move(shorter.trace), {}};
  longer.metrics =
      whole_step(shorter.metrics, longer.metrics, longer.trace, *longer.rounds, *scenario.cluster);
  longer.scenario = scenario;
  longer.plan.notes.push_back(fmt::format(
      "{} of {} micro-batches were simulated; {} further rounds of {} repeat the last one exactly.",
      microbatches, scenario.microbatches, left / round, round));
  return true;
}

bool may_repeat_rounds(const Scenario& scenario) {
  if (!scenario.engine.fold || scenario.engine.fidelity == Fidelity::analytic) return false;
  return !order_of(scenario.strategy.schedule).retains_all || scenario.strategy.pipeline == 1;
}

// `few`: the plan with `number` micro-batches.
bool is_simulated_whole(const Plan& few, int number, const Scenario& scenario, double most_ops) {
  return few.schedule->asynchrony || ops_of(*few.schedule) * scenario.microbatches / number <= most_ops;
}

}  // namespace

void prepare_schedules(KnownSchedules& known, const Scenario& scenario) {
  double sum = 0;
  int tried = 0;
  if (may_repeat_rounds(scenario))
    for (const int number : numbers_to_try(scenario)) {
      sum += number;
      if (kLeastSaving * sum > scenario.microbatches) break;
      const Plan plan = known.plan_of(with_microbatches(scenario, number));
      if (is_simulated_whole(plan, number, scenario, kMostOpsInFull)) break;
      if (++tried == 2) return;  // usually, two are enough
    }
  known.plan_of(scenario);
}

std::optional<Prediction> predict_from_rounds(const Scenario& scenario, const WatchPrediction& watch,
                                              double most_ops, KnownSchedules* known) {
  if (!may_repeat_rounds(scenario)) return {};
  std::vector<std::pair<int, Prediction>> simulated;
  double sum = 0;
  std::int64_t events = 0;
  for (const int number : numbers_to_try(scenario)) {
    sum += number;
    if (kLeastSaving * sum > scenario.microbatches) return {};
    try {
      const Scenario fewer = with_microbatches(scenario, number);
      Plan plan = known ? known->plan_of(fewer) : write_schedule(fewer);
      if (is_simulated_whole(plan, number, scenario, most_ops)) return {};
      Prediction p = known ? predict_checked(fewer, std::move(plan), Where::child, watch)
                           : predict(fewer, std::move(plan), Where::child, watch);
      events += p.trace.engine.events;
      for (auto shorter = simulated.rbegin(); shorter != simulated.rend(); ++shorter)
        if (extend(p, number, shorter->second, shorter->first, scenario)) {
          p.trace.engine.events = events;
          return p;
        }
      simulated.emplace_back(number, std::move(p));
    } catch (const InputError&) {
      return {};  // the strategy does not go with so few micro-batches
    }
  }
  return {};
}

}  // namespace rehearse
