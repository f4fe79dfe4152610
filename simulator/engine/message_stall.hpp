// How much longer launches take where messages between pipeline stages hold up the processes that issue them.
#pragma once

#include <vector>

#include "simulator/schedule/mesh.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Returns the factor on the launch times of the role's ranks: 1 + `share` (HostLaunches::message_stall) for
// each tensor rank if any two neighbouring stages are on different nodes, else 1.
double stall_factor(double share, const Role& role, const std::vector<Endpoint>& endpoints,
                    const Cluster& cluster);

}  // namespace rehearse
