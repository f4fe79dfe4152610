// Simulates a run on a cluster with SimGrid and returns its trace.
#pragma once

#include "simulator/costs/engine_options.hpp"
#include "simulator/engine/progress.hpp"
#include "simulator/schedule/schedule.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Whether check() still has to examine a run's schedules, or has accepted them already.
enum class Schedules { to_check, checked };

// Simulates a run. It can be called only once per process, because SimGrid cannot start again;
// simulate_in_child() is for callers that need several simulations. The trace reports what happens inside the
// run, such as a dead link. Throws RunError if a schedule is malformed.
Trace simulate(const Run& run, const Cluster& cluster, const EngineOptions& options,
               Schedules schedules = Schedules::to_check);

// Like simulate(), but in a forked child process, so it can be called many times, and an abort inside SimGrid
// ends only the child (throws RunError). Changes that arithmetic callbacks make in memory are lost with the
// child. Calls `watch` periodically with the progress.
Trace simulate_in_child(const Run& run, const Cluster& cluster, const EngineOptions& options,
                        const WatchSimulation& watch = {}, Schedules schedules = Schedules::to_check);

}  // namespace rehearse
