// Runs a list of jobs on a cluster under a scheduling policy, as actors on SimGrid's clock.
#pragma once

#include <vector>

#include "simulator/life/scheduling/job_list.hpp"
#include "simulator/life/scheduling/placement.hpp"
#include "simulator/life/scheduling/policies.hpp"

namespace rehearse {

struct JobsRun {
  const std::vector<ListedJob>* jobs = nullptr;  // by time of submission, their durations known
  int nodes = 1, devices_per_node = 1, nodes_per_leaf = 1;
  PlacementKind placement = PlacementKind::packed;
  // Time for which a job holds its devices before it makes progress: at each start, and in addition at each
  // start after a preemption, for saving and loading its checkpoint.
  double start_cost_s = 0, preemption_cost_s = 0;
  double interval_s =
      0;  // above 0: the policy is asked at multiples of it only, as with SchedulingPolicy::round_s
  bool record_spans = false;
};

// These have no pointers, so that a process can hand them to another as they are.
struct JobOutcome {
  double start_s = kNever_s, end_s = kNever_s;
  double held_s = 0;  // for which it held devices
  int preemptions = 0;
  int nodes = 0, leaves = 0;  // that it was last on
};
struct JobSpan {
  double start_s = 0, end_s = 0;
  int job = 0, node = 0, devices = 0;
};

struct JobsResult {
  std::vector<JobOutcome> outcomes;  // in the order of the list
  std::vector<JobSpan> spans;        // if they are recorded
  std::int64_t decisions = 0;        // times the policy was asked
  std::int64_t most_active = 0;      // jobs that waited or ran at once
};

// All jobs must fit into the cluster. It can be called only once per process, like simulate() of the engine.
// Throws RunError if the policy lets jobs wait for ever, or gives away more devices than there are.
JobsResult run_jobs(const JobsRun& run, const SchedulingPolicy& policy);

}  // namespace rehearse
