#include "simulator/commands/simulate/remedy_trials.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "simulator/commands/tasks/task_pool.hpp"
#include "simulator/costs/reserved.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {
namespace {

constexpr double kMostOpsInFull = 60'000;

std::string to_line(const Trial& trial) {
  return nlohmann::json{trial.possible, trial.step_time_s, trial.samples_per_s, trial.memory_bytes,
                        trial.exact}
      .dump();
}

Trial trial_of(const TaskEnd& end) {
  if (!end.failure.empty()) return {};
  const nlohmann::json json = nlohmann::json::parse(end.output);
  return {json.at(0).get<bool>(), json.at(1).get<double>(), json.at(2).get<double>(),
          json.at(3).get<double>(), json.at(4).get<bool>()};
}

// Two numbers of micro-batches from which a step with more of them is extrapolated.
struct Shortened {
  int less = 0, more = 0;
};

// From `stages` micro-batches on, each further one adds about the same time; interleaved orders add `stages`
// of them at a time.
Shortened shortened(const Scenario& scenario, Effort effort) {
  const int stages = std::max(2, scenario.strategy.pipeline);
  const bool in_rounds = scenario.strategy.virtual_stages > 1 || effort == Effort::precise;
  return {stages, stages + (in_rounds ? stages : std::max(2, stages / 4))};
}

// Returns the longer step's prediction with time, throughput and memory extrapolated to `all` micro-batches.
Prediction extended(const Metrics& shorter, int less, Prediction longer, int more, int all) {
  const Extrapolation at_all{static_cast<double>(less), static_cast<double>(more), static_cast<double>(all)};
  const double samples = longer.metrics.samples_per_s * longer.metrics.step_time_s * all / more;
  longer.metrics.step_time_s = at_all(shorter.step_time_s, longer.metrics.step_time_s);
  longer.metrics.samples_per_s = samples / longer.metrics.step_time_s;
  MemoryUse& memory = longer.metrics.memory;
  memory.total = at_all(shorter.memory.total, memory.total);
  memory.fits = memory.capacity <= 0 || memory.total <= memory.capacity;
  return longer;
}

}  // namespace

bool fits_with_reserve(const Prediction& p) {
  const MemoryUse& use = p.metrics.memory;
  const double reserved =
      reserved_bytes(*p.plan.schedule, p.plan.endpoints, *p.scenario.cluster, p.scenario.framework).total();
  return use.capacity <= 0 || use.total + reserved <= use.capacity;
}

double ops_of_trial(const Prediction& base) {
  const double more = shortened(base.scenario, Effort::few).more;
  return ops_of(*base.plan.schedule) * std::min(1.0, more / base.scenario.microbatches);
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
    const int all = scenario.microbatches;
    const auto [less, more] = shortened(scenario, effort);
    Plan plan = write_schedule(more < all ? with_microbatches(scenario, more) : scenario);
    const double ops = ops_of(*plan.schedule), capacity = base_.metrics.memory.capacity;
    if (ops > most_ops_ || (capacity > 0 && peak_worker_bytes(*plan.schedule) > capacity)) return {};
    if (more >= all) return judged(predict(scenario, std::move(plan), Where::here), true);
    const bool steady = grows_steadily(scenario.strategy);
    if (!steady && ops * all / more > most_ops_) return {};
    if (plan.schedule->asynchrony || !steady ||
        (effort == Effort::precise && ops * all / more <= kMostOpsInFull))
      return judged(predict(scenario, Where::here), true);
    const Metrics shorter = predict(with_microbatches(scenario, less), Where::child).metrics;
    Prediction longer = predict(with_microbatches(scenario, more), std::move(plan), Where::here);
    return judged(extended(shorter, less, std::move(longer), more, all), false);
  } catch (const std::exception&) {
    return {};  // the change does not suit the scenario
  }
}

Trial Trials::judged(const Prediction& p, bool exact) const {
  const Metrics& m = p.metrics;
  const bool host_fits = !m.host_memory || m.host_memory->fits;
  const bool fits = m.memory.fits && host_fits && (!base_fits_with_reserve_ || fits_with_reserve(p));
  return {fits, m.step_time_s, m.samples_per_s, m.memory.total, exact};
}

}  // namespace rehearse
