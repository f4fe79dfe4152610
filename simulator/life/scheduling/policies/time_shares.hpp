// Shares device time among jobs by max-min fairness, as Gavel does.
#pragma once

#include <vector>

#include "simulator/life/scheduling/cluster_state.hpp"

namespace rehearse {

// D. Narayanan et al., OSDI 2020, section 5 ("rounds of 6 minutes").
inline constexpr double kGavelRound_s = 360;

// Returns for each job the share of time for which it should run: the device time of every job, devices times
// share, is as large as that of the others unless the job runs always (water filling).
std::vector<double> max_min_time_shares(const ClusterState& state);

}  // namespace rehearse
