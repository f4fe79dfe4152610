#include "simulator/commands/simulate/remedy_trials.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "simulator/commands/predicting/repeated_rounds.hpp"
#include "simulator/commands/tasks/task_pool.hpp"
#include "simulator/costs/reserved.hpp"
#include "simulator/report/json_reader.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {
namespace {

std::string to_line(const Trial& trial) {
  return json_line({trial.possible, trial.step_time_s, trial.samples_per_s, trial.memory_bytes, trial.exact});
}

Trial trial_of(const TaskEnd& end) {
  if (!end.failure.empty()) return {};
  const nlohmann::json json = json_in_line(end.output);
  return {json.at(0).get<bool>(), json.at(1).get<double>(), json.at(2).get<double>(),
          json.at(3).get<double>(), json.at(4).get<bool>()};
}

// Returns the number of micro-batches with which a trial's longest simulation is usually made.
int microbatches_of_trial(const Scenario& scenario) {
  return std::min(scenario.microbatches, 2 * scenario.strategy.pipeline + 2);
}

}  // namespace

bool fits_with_reserve(const Prediction& p) {
  const MemoryUse& use = p.metrics.memory;
  const double reserved =
      reserved_bytes(*p.plan.schedule, p.plan.endpoints, *p.scenario.cluster, p.scenario.framework).total();
  return use.capacity <= 0 || use.total + reserved <= use.capacity;
}

double ops_of_trial(const Prediction& base) {
  const int written = base.rounds ? base.rounds->microbatches : base.scenario.microbatches;
  return ops_of(*base.plan.schedule) * microbatches_of_trial(base.scenario) / written;
}

Scenario changed(const Prediction& base, const std::vector<std::string>& sets) {
  return read_scenario_text(base.scenario.text, base.scenario.name, sets);
}

Trials::Trials(const Prediction& base, double most_ops, int jobs,
               const std::function<void(std::size_t, std::size_t)>& watch)
    : base_(base),
      base_fits_with_reserve_(fits_with_reserve(base)),
      most_ops_(most_ops),
      jobs_(jobs),
      watch_(watch) {}

std::vector<Trial> Trials::run(const std::vector<std::vector<std::string>>& sets, Effort effort) const {
  std::vector<Trial> trials(sets.size());
  TaskPool pool;
  std::size_t ended = 0;
  pool.jobs = jobs_;
  pool.next = [&, next = std::int64_t{0}]() mutable {
    return next < static_cast<std::int64_t>(sets.size()) ? next++ : -1;
  };
  pool.work = [&](std::int64_t task) {
    return to_line(simulate(sets[static_cast<std::size_t>(task)], effort));
  };
  pool.ended = [&](const TaskEnd& end) {
    trials[static_cast<std::size_t>(end.task)] = trial_of(end);
    if (watch_) watch_(++ended, sets.size());
  };
  pool.tick = [] {};
  rehearse::run(pool);
  return trials;
}

// Simulates in this process, which is a child.
Trial Trials::simulate(const std::vector<std::string>& sets, Effort effort) const {
  try {
    const Scenario scenario = changed(base_, sets);
    const int all = scenario.microbatches, few = microbatches_of_trial(scenario);
    Plan plan = write_schedule(few < all ? with_microbatches(scenario, few) : scenario);
    const double ops = ops_of(*plan.schedule), capacity = base_.metrics.memory.capacity;
    if (ops > most_ops_ || (capacity > 0 && peak_worker_bytes(*plan.schedule) > capacity)) return {};
    if (few == all) return judged(predict(scenario, std::move(plan), Where::here));
    if (!grows_steadily(scenario.strategy) && ops * all / few > most_ops_) return {};
    RoundsEffort rounds;
    rounds.most_ops = most_ops_;
    if (effort == Effort::few) {
      rounds.least_ops = rounds.most_ops = 0;
      rounds.roughly = [](double, double) { return true; };
    }
    return judged(predict(scenario, Where::here, {}, rounds));
  } catch (const std::exception&) {
    return {};  // the change does not suit the scenario
  }
}

Trial Trials::judged(const Prediction& p) const {
  const Metrics& m = p.metrics;
  const bool host_fits = !m.host_memory || m.host_memory->fits;
  const bool fits = m.memory.fits && host_fits && (!base_fits_with_reserve_ || fits_with_reserve(p));
  return {fits, m.step_time_s, m.samples_per_s, m.memory.total, !p.rounds || p.rounds->exact};
}

}  // namespace rehearse
