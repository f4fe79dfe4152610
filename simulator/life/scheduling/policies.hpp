// Lists the scheduling policies: pure functions from the state of a cluster to who runs. A policy is a file
// in policies/ and a line in the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "simulator/life/scheduling/cluster_state.hpp"

namespace rehearse {

struct SchedulingPolicy {
  std::string_view name;
  std::string_view help;
  std::string_view source;
  Allocation (*allocate)(const ClusterState& state);
  // Returns when the policy wants to be asked again though no job is submitted or ends before; kNever_s: not.
  // `runs` is what it has just answered. Null: never.
  double (*ask_again_s)(const ClusterState& state, const Allocation& runs) = nullptr;
  // Above 0: asked only at multiples of this time. Jobs that are submitted in between wait, and devices of
  // jobs that end are idle until then.
  double round_s = 0;
};

std::span<const SchedulingPolicy> scheduling_policies();
const SchedulingPolicy* find_policy(std::string_view name);  // null: there is none

// The policies, each in its file.
Allocation first_come_first_served(const ClusterState& state);
Allocation easy_backfill(const ClusterState& state);
Allocation shortest_job(const ClusterState& state);
Allocation shortest_remaining_time(const ClusterState& state);
Allocation shortest_remaining_service(const ClusterState& state);
Allocation tiresias(const ClusterState& state);
double tiresias_demotion_s(const ClusterState& state, const Allocation& runs);
Allocation gavel(const ClusterState& state);

}  // namespace rehearse
