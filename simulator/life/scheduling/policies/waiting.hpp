// Orders the jobs that wait.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/life/scheduling/cluster_state.hpp"

namespace rehearse {

// Returns the positions of the jobs that wait, those of higher priority first, else in the order of
// submission.
std::vector<std::size_t> waiting_by_priority(const ClusterState& state);

}  // namespace rehearse
