// Builds the all-reduce that uses every link of a torus.
#pragma once

#include <string>
#include <vector>

#include "simulator/collectives/plan.hpp"

namespace rehearse {

// Returns the members of each node, with nodes in the order of their first member.
std::vector<std::vector<int>> members_by_node(const Cluster& cluster, const std::vector<Endpoint>& members);

// Like misfit(): the fabric must be a torus or a ring, and the group must fill entire dimensions of it with
// the same number of members on every node.
std::string torus_misfit(const Cluster& cluster, const std::vector<Endpoint>& members);

// Returns 2 D lanes for D dimensions, each with 1/(2 D) of the buffer. A lane reduce-scatters along one
// dimension after the other, then all-gathers in reverse order. Half of the lanes go upwards and half
// downwards, and no two start with the same dimension and direction. Several members of one node first
// reduce-scatter the lane's part among themselves.
std::vector<Lane> torus_lanes(const Cluster& cluster, const std::vector<Endpoint>& members);

}  // namespace rehearse
