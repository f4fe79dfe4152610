// Turns a scenario into its result: writes the schedule, runs it and evaluates the trace.
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
  std::optional<Uncertainty> uncertainty;   // see uncertainty.hpp
  std::optional<TriedRemedies> remedies;    // see tried_remedies.hpp
  std::optional<RepeatedRounds> rounds;     // see repeated_rounds.hpp
  std::optional<CheckpointRun> checkpoint;  // see checkpoints.hpp; plan and trace above have none
  Result result() const {
    return {scenario,
            plan,
            trace,
            metrics,
            path,
            faster,
            nullptr,
            slow,
            uncertainty,
            remedies,
            rounds ? &*rounds : nullptr,
            false,
            checkpoint ? &*checkpoint : nullptr};
  }
};

// Where a prediction is simulated: in this process, which is possible only once, or in a child, any number of
// times (simulator/engine/engine.hpp). At `analytic`, links that would carry more than they can are simulated
// again as flows, and a note says so.
enum class Where { here, child };
// Callbacks that receive the progress of a prediction.
struct WatchPrediction {
  WatchSimulation simulation;  // of a simulation in a child
  std::function<void(std::size_t ended, std::size_t all)> what_ifs;
};

// How much of a step's trace is wanted. For figures alone, a long step whose micro-batches repeat the same
// rounds is simulated with few of them (repeated_rounds.hpp); the trace and the plan are then those of the
// few.
enum class Detail { figures, every_span };

Prediction predict(Scenario scenario, Where where, const WatchPrediction& watch = {},
                   Detail detail = Detail::figures);
// Predicts figures, from a few micro-batches where `effort` says so.
struct RoundsEffort;  // repeated_rounds.hpp
Prediction predict(Scenario scenario, Where where, const WatchPrediction& watch, const RoundsEffort& effort);
// Simulates every span of the scenario's schedule, which has already been written.
Prediction predict(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch = {});

// Throws RunError if the fullest device, or the host memory of a node, needs more memory than it has. The
// error states which it is, what it needs and has, and what would make it fit.
void refuse_overflow(const Prediction& prediction);

// Adds the critical path and the effect of 10 % more of each resource: for each resource that is used, the
// same plan on a cluster with that change, simulated again in a child process. Runs of too many events are
// not simulated again (WhatIf::step_time_s is then empty). A count, rather than a clock, decides this, so
// that a scenario always has the same answer. Also adds what slowed parts of the cluster cost, all together
// and the slowest of them alone. `prediction` must have been made in a child.
void explain(Prediction& prediction, const WatchPrediction& watch = {});

}  // namespace rehearse
