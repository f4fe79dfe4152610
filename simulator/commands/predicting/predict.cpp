#include "simulator/commands/predicting/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/text/error.hpp"
#include "simulator/commands/predicting/checkpoints.hpp"
#include "simulator/commands/predicting/known_schedules.hpp"
#include "simulator/commands/predicting/repeated_rounds.hpp"
#include "simulator/engine/engine.hpp"
#include "simulator/trace/jittered_steps.hpp"
#include "simulator/trace/starting_phases.hpp"

namespace rehearse {
namespace {

constexpr double kFull = 1 + 1e-9;

// Returns the links that would carry more than they can, in the step or in the entire run. Their users have
// to share them.
std::vector<int> overloaded_links(const Trace& trace, const Cluster& cluster) {
  double step_s = trace.end_s, steps = 1;
  if (!trace.run.jobs[0].phases.back().schedule->asynchrony) {
    const StepWindow window = last_step(trace, 0);
    step_s = window.end_s - window.begin_s;
    for (const int step : trace.spans.step) steps = std::max(steps, step + 1.0);
  }
  std::vector<int> links;
  for (const LinkUse& use : trace.link_use) {
    const double needed_s = use.bytes / cluster.bandwidth(use.link);
    if (needed_s > kFull * trace.end_s || needed_s / steps > kFull * step_s) links.push_back(use.link);
  }
  return links;
}

// Closed forms do not model contention. Where it is certain, this replaces them by flows, until no link is
// overloaded.
Trace simulate_analytic(const Run& run, const Cluster& cluster, EngineOptions& options,
                        const WatchSimulation& watch, Schedules schedules) {
  for (;;) {
    Trace trace = simulate_in_child(run, cluster, options, watch, schedules);
    const std::size_t known = options.shared_links.size();
    for (const int link : overloaded_links(trace, cluster))
      if (std::count(options.shared_links.begin(), options.shared_links.end(), link) == 0)
        options.shared_links.push_back(link);
    if (options.shared_links.size() == known) return trace;
  }
}

Trace execute(const Run& run, const Cluster& cluster, EngineOptions& options, Where where,
              const WatchSimulation& watch, Schedules schedules) {
  if (options.fidelity == Fidelity::analytic)
    return simulate_analytic(run, cluster, options, watch, schedules);
  if (where == Where::here) return simulate(run, cluster, options, schedules);
  return simulate_in_child(run, cluster, options, watch, schedules);
}

// Averages over simulations that differ in when the workers begin. The trace is that of the simulation whose
// step time is nearest to the mean.
void simulate_starting_phases(Prediction& p, Run run, const std::vector<std::vector<double>>& starts_s,
                              const WatchSimulation& watch, Schedules schedules) {
  EngineOptions& options = p.scenario.engine;
  std::vector<Trace> traces;
  std::size_t known = 0;
  do {  // repeat if a later phase overloads another link: all of them must leave out the same contention
    known = options.shared_links.size();
    traces.clear();
    for (const std::vector<double>& start_s : starts_s) {
      run.jobs.front().start_s = start_s;
      traces.push_back(execute(run, *p.scenario.cluster, options, Where::child, watch, schedules));
    }
  } while (options.shared_links.size() != known);
  std::vector<Metrics> metrics;
  std::int64_t events = 0;
  for (const Trace& trace : traces) {
    metrics.push_back(evaluate(trace, p.scenario, p.plan));
    events += trace.engine.events;
  }
  p.metrics = mean_over_phases(metrics, traces.front(), *p.scenario.cluster);
  std::size_t nearest = 0;
  const auto distance_s = [&](std::size_t i) {
    return std::abs(metrics[i].step_time_s - p.metrics.step_time_s);
  };
  for (std::size_t i = 1; i < metrics.size(); ++i)
    if (distance_s(i) < distance_s(nearest)) nearest = i;
  p.trace = std::move(traces[nearest]);
  p.trace.engine.events = events;
}

// Returns the number of steps of random length that are simulated without being asked for, every rank on its
// own.
int cheap_steps(const Schedule& schedule) {
  constexpr double kMostOps = 5e6, kFewest = 8, kMost = 64;
  double ops = 0;
  for (std::size_t role = 0; role < schedule.roles.size(); ++role)
    for (int rank = 0; rank < schedule.roles[role].size(); ++rank)
      if (const int program = schedule.program_of(static_cast<int>(role), rank); program >= 0)
        ops += static_cast<double>(schedule.programs[static_cast<std::size_t>(program)].ops.size());
  return static_cast<int>(std::clamp(kMostOps / std::max(1.0, ops), kFewest, kMost));
}

Prediction predict_plan(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch,
                        Schedules schedules) {
  Prediction p;
  p.scenario = std::move(scenario);
  p.plan = std::move(plan);
  Phase phase;
  phase.schedule = p.plan.schedule;
  Jitter& jitter = p.scenario.engine.jitter;
  if (jitter.any() && jitter.steps == 0) jitter.steps = cheap_steps(*p.plan.schedule);
  phase.repeats = p.plan.schedule->repeats(jitter.any() ? jitter.steps : p.scenario.steps);
  phase.beyond = p.plan.schedule->beyond();
  Run run;
  run.jobs.push_back({p.scenario.name, {phase}, p.plan.endpoints});
  const Cluster& cluster = *p.scenario.cluster;
  EngineOptions& options = p.scenario.engine;
  options.shared_links.clear();
  const std::optional<Asynchrony>& asynchrony = p.plan.schedule->asynchrony;
  if (asynchrony) {
    simulate_starting_phases(p, std::move(run), asynchrony->starts_s, watch.simulation, schedules);
  } else {
    p.trace = execute(run, cluster, options, where, watch.simulation, schedules);
    p.metrics = jitter.any() ? evaluate_jittered(p.trace, p.scenario, p.plan, jitter.steps)
                             : evaluate(p.trace, p.scenario, p.plan);
  }
  if (!options.shared_links.empty()) {
    const bool one = options.shared_links.size() == 1;
    p.plan.notes.push_back(
        fmt::format("Fidelity \"analytic\" leaves out contention, but {}{} would carry more than {} can: "
                    "transfers over {} were simulated as flows.",
                    cluster.link_name(options.shared_links.front()), one ? "" : " and other links",
                    one ? "it" : "they", one ? "it" : "them"));
  }
  return p;
}

Prediction predict_whole(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch,
                         Schedules schedules) {
  if (scenario.checkpoint.given) where = Where::child;  // it is simulated, too
  Prediction p = predict_plan(std::move(scenario), std::move(plan), where, watch, schedules);
  add_checkpoints(p, watch, StepsBeside::whole);
  return p;
}

}  // namespace

Prediction predict(Scenario scenario, Where where, const WatchPrediction& watch, Detail detail) {
  if (detail == Detail::figures) return predict(std::move(scenario), where, watch, RoundsEffort());
  Plan plan = write_schedule(scenario);
  return predict(std::move(scenario), std::move(plan), where, watch);
}

Prediction predict(Scenario scenario, Where where, const WatchPrediction& watch, const RoundsEffort& effort) {
  std::optional<Prediction> p = predict_from_rounds(scenario, watch, effort);
  if (!p) return predict(std::move(scenario), where, watch, Detail::every_span);
  add_checkpoints(*p, watch, StepsBeside::few_microbatches);
  return *std::move(p);
}

Prediction predict(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch) {
  return predict_whole(std::move(scenario), std::move(plan), where, watch, Schedules::to_check);
}

Prediction predict_checked(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch) {
  return predict_whole(std::move(scenario), std::move(plan), where, watch, Schedules::checked);
}

void refuse_overflow(const Prediction& prediction) {
  const std::optional<HostMemoryUse>& host = prediction.metrics.host_memory;
  if (host && !host->fits)
    throw RunError(fmt::format("{} does not fit: {}", prediction.scenario.name, host_memory_sentence(*host)));
  if (prediction.metrics.memory.fits) return;
  throw RunError(fmt::format("{} does not fit into memory: {}", prediction.scenario.name,
                             overflow_clause(prediction.result())));
}

}  // namespace rehearse
