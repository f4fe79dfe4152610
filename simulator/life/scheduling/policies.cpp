#include "simulator/life/scheduling/policies.hpp"

#include <algorithm>

#include "simulator/life/scheduling/policies/time_shares.hpp"

namespace rehearse {
namespace {

constexpr SchedulingPolicy kPolicies[] = {
    {"fifo", "in the order of priority and submission; a job that does not fit holds up all others",
     "first come, first served", first_come_first_served},
    {"backfill", "as fifo, but later jobs overtake the first one that waits if they do not delay it",
     "EASY: D. Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995", easy_backfill},
    {"sjf", "the shortest job first, which then keeps its devices", "shortest job first", shortest_job},
    {"srtf", "the least remaining time first, taking devices from others",
     "L. Schrage, A Proof of the Optimality of the Shortest Remaining Processing Time Discipline, Operations "
     "Research 16 (1968)",
     shortest_remaining_time},
    {"srsf", "the least remaining time on all its devices together first, taking devices from others",
     "J. Gu et al., Tiresias, NSDI 2019: shortest remaining service first", shortest_remaining_service},
    {"tiresias", "the least service so far first, in two queues; needs no durations",
     "J. Gu et al., Tiresias, NSDI 2019: discretized two-dimensional least attained service", tiresias,
     tiresias_demotion_s},
    {"gavel", "equal shares of device time, in rounds",
     "D. Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI "
     "2020",
     gavel, nullptr, kGavelRound_s},
};

}  // namespace

std::span<const SchedulingPolicy> scheduling_policies() {
  return kPolicies;
}

const SchedulingPolicy* find_policy(std::string_view name) {
  const auto found = std::find_if(std::begin(kPolicies), std::end(kPolicies),
                                  [&](const SchedulingPolicy& policy) { return policy.name == name; });
  return found == std::end(kPolicies) ? nullptr : found;
}

}  // namespace rehearse
