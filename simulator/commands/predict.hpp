// From a scenario to its result: plan, run, evaluate.
#pragma once

#include <cstddef>
#include <functional>

#include "simulator/engine/progress.hpp"
#include "simulator/report/report.hpp"

namespace rehearse {

struct Prediction {
  Scenario scenario;
  Plan plan;
  Trace trace;
  Metrics metrics;
  std::vector<PathSegment> path;
  std::vector<WhatIf> faster;
  std::vector<SlowCost> slow;
  std::optional<Uncertainty> uncertainty;  // uncertainty.hpp
  Result result() const { return {scenario, plan, trace, metrics, path, faster, nullptr, slow, uncertainty}; }
};

// In this process once only; in a child as often as wanted (simulator/engine/engine.hpp). At `analytic`,
// links that would carry more than they can are simulated again as flows, and a note says so.
enum class Where { here, child };
// Who wants to know how far a prediction is.
struct WatchPrediction {
  WatchSimulation simulation;  // of a child
  std::function<void(std::size_t ended, std::size_t all)> what_ifs;
};

Prediction predict(Scenario scenario, Where where, const WatchPrediction& watch = {});
// The same with the scenario's schedule, which is written already.
Prediction predict(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch = {});

// RunError if the fullest device needs more memory than it has: which it is, what it needs and has, and what
// would make it fit.
void refuse_overflow(const Prediction& prediction);

// Adds the critical path and what 10 % more of each resource would bring: the same plan on a cluster that is
// changed so, simulated again in a child process for each resource that is used. Runs of too many events are
// not simulated again (WhatIf::step_time_s is empty then): a count, and no clock, decides, so that a scenario
// has one answer. Also adds what slowed parts of the cluster cost, all together and the slowest of them
// alone. `prediction` must have been made in a child.
void explain(Prediction& prediction, const WatchPrediction& watch = {});

}  // namespace rehearse
