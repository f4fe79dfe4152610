#include "simulator/commands/predict.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/engine.hpp"

namespace rehearse {
namespace {

constexpr double kFull = 1 + 1e-9;

// Links that would carry more in the step, or in the whole run, than they can: their users have to share
// them.
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

// Closed forms know no contention. Where it is certain, flows take their place, until no link is overloaded.
Trace simulate_analytic(const Run& run, const Cluster& cluster, EngineOptions& options) {
  for (;;) {
    Trace trace = simulate_in_child(run, cluster, options);
    const std::size_t known = options.shared_links.size();
    for (const int link : overloaded_links(trace, cluster))
      if (std::count(options.shared_links.begin(), options.shared_links.end(), link) == 0)
        options.shared_links.push_back(link);
    if (options.shared_links.size() == known) return trace;
  }
}

}  // namespace

Prediction predict(Scenario scenario, Where where) {
  Prediction p;
  p.scenario = std::move(scenario);
  p.plan = write_schedule(p.scenario);
  Phase phase;
  phase.schedule = p.plan.schedule;
  phase.repeats = p.plan.schedule->repeats(p.scenario.steps);
  Run run;
  run.jobs.push_back({p.scenario.name, {phase}, p.plan.endpoints});
  const Cluster& cluster = *p.scenario.cluster;
  EngineOptions& options = p.scenario.engine;
  options.shared_links.clear();
  if (options.fidelity == Fidelity::analytic)
    p.trace = simulate_analytic(run, cluster, options);
  else
    p.trace = (where == Where::here ? simulate : simulate_in_child)(run, cluster, options);
  if (!options.shared_links.empty()) {
    const bool one = options.shared_links.size() == 1;
    p.plan.notes.push_back(
        fmt::format("Fidelity \"analytic\" leaves out contention, but {}{} would carry more than {} can: "
                    "transfers over {} "
                    "were simulated as flows.",
                    cluster.link_name(options.shared_links.front()), one ? "" : " and other links",
                    one ? "it" : "they", one ? "it" : "them"));
  }
  p.metrics = evaluate(p.trace, p.scenario, p.plan);
  return p;
}

}  // namespace rehearse
