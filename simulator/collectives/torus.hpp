// The all-reduce that uses every link of a torus.
#pragma once

#include <string>
#include <vector>

#include "simulator/collectives/plan.hpp"

namespace rehearse {

// The members of each node, nodes in the order of their first member.
std::vector<std::vector<int>> members_by_node(const Cluster& cluster, const std::vector<Endpoint>& members);

// As misfit(): the fabric must be a torus or a ring, and the group must fill whole dimensions of it with
// equally many members on every node.
std::string torus_misfit(const Cluster& cluster, const std::vector<Endpoint>& members);

// For D dimensions 2 D lanes of 1/(2 D) of the buffer; each reduce-scatters along one dimension after the
// other, half of the lanes upwards, half downwards, no two of them beginning alike, and gathers back. Several
// members of a node first share out the lane's part among them.
std::vector<Lane> torus_lanes(const Cluster& cluster, const std::vector<Endpoint>& members);

}  // namespace rehearse
