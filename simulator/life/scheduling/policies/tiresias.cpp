// Tiresias (J. Gu et al., NSDI 2019), discretized two-dimensional least attained service: a job's service is
// the time for which it has held devices, times their number. Jobs are in the first of two queues until their
// service reaches a threshold, and those of the first go before those of the second. Within a queue, jobs
// that started earlier go first, then those submitted earlier. Jobs that do not fit are skipped.
//
// Threshold: 16 device-hours, as in the simulator of Pollux (A. Qiao et al., OSDI 2021; petuum/adaptdl,
// branch osdi21-artifact, simulator/tiresias.py), which compares with Tiresias. Nobody is promoted back: its
// PromoteKnob is off, as in that comparison.
#include <algorithm>
#include <tuple>

#include "simulator/life/scheduling/policies.hpp"
#include "simulator/life/scheduling/policies/filling.hpp"

namespace rehearse {
namespace {

constexpr double kThreshold = 16 * 3600;  // device-seconds
constexpr double kRounding_s = 1e-6;      // of times on a clock of years

double held_until_demotion_s(const ActiveJob& job) {
  return kThreshold / job.devices;
}

bool demoted(const ActiveJob& job) {
  return job.held_s >= held_until_demotion_s(job) - kRounding_s;
}

}  // namespace

Allocation tiresias(const ClusterState& state) {
  return fill_by_key(state, [](const ActiveJob& job) {
    return std::make_tuple(demoted(job), -job.priority, job.first_start_s);
  });
}

double tiresias_demotion_s(const ClusterState& state, const Allocation& runs) {
  double next_s = kNever_s;
  for (std::size_t j = 0; j < state.jobs.size(); ++j)
    if (runs[j] && !demoted(*state.jobs[j]))
      next_s = std::min(next_s, state.now_s + held_until_demotion_s(*state.jobs[j]) - state.jobs[j]->held_s);
  return next_s;
}

}  // namespace rehearse
