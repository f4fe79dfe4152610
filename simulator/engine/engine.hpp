// The simulated executor: SimGrid carries out a run on a cluster and returns its trace.
#pragma once

#include "simulator/costs/engine_options.hpp"
#include "simulator/engine/progress.hpp"
#include "simulator/schedule/schedule.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Simulates once per process: SimGrid cannot begin anew (simulate_in_child is for callers that need several).
// What happens inside the run (a dead link) is told by the trace. RunError for a bad schedule.
Trace simulate(const Run& run, const Cluster& cluster, const EngineOptions& options);

// The same in a forked child, so that it can be called many times and an abort inside SimGrid ends only the
// child (RunError). What arithmetic callbacks change in memory is lost with the child.
// `watch` hears of its progress now and then.
Trace simulate_in_child(const Run& run, const Cluster& cluster, const EngineOptions& options,
                        const WatchSimulation& watch = {});

}  // namespace rehearse
