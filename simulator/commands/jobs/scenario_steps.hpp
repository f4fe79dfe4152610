// Finds the step times of jobs whose work is a scenario.
#pragma once

#include "simulator/life/scheduling/job_list.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Simulates each scenario once for each number of devices with which jobs ask for it, on nodes of the
// cluster, in up to `processes` child processes, and sets the jobs' step times and durations. Throws
// InputError for a scenario that cannot be read or has no such number of devices, and RunError for one that
// fails, both of which name the line.
void find_scenario_steps(JobList& list, const std::string& cluster, const std::vector<std::string>& overrides,
                         int devices_per_node, int processes);

}  // namespace rehearse
