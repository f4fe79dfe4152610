// Describes what a scheduling policy sees of a cluster and its jobs, and what it answers.
#pragma once

#include <limits>
#include <span>
#include <vector>

namespace rehearse {

inline constexpr double kNever_s = std::numeric_limits<double>::infinity();

// A job that was submitted and has not ended.
struct ActiveJob {
  int number = 0;  // in the list, which is in the order of submission
  double submit_s = 0, priority = 0;
  int devices = 1;                  // that it asks for
  double duration_s = 0;            // of its work alone on these devices, as the list says
  double remaining_s = 0;           // of that work
  double held_s = 0;                // for which it has held devices, now and before
  double first_start_s = kNever_s;  // when it first got devices
  double end_s = kNever_s;          // when it ends if it keeps its devices
  bool running = false;             // it holds `devices` devices
};

struct ClusterState {
  double now_s = 0;
  int devices = 0;                         // of the whole cluster
  std::span<const ActiveJob* const> jobs;  // in the order of submission
};

// Whether each job of the state is to run now, in their order. The jobs that run may not ask for more devices
// than the cluster has.
using Allocation = std::vector<bool>;

}  // namespace rehearse
