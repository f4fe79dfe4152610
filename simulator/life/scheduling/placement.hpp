// Chooses the devices that a job gets: on which nodes, and how many on each.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// packed: on as few nodes as possible, and of the nodes that suffice those with the fewest free devices.
// spread: one after the other on the node with most free devices. topology: packed, and on as few leaves
// (groups of nodes on one switch) as possible.
enum class PlacementKind { packed, spread, topology };
inline constexpr std::array<std::string_view, 3> kPlacementNames = {"packed", "spread", "topology"};

struct NodeShare {
  int node = 0, devices = 0;
};
using JobPlacement = std::vector<NodeShare>;  // by node

// The devices of a cluster that are free.
class FreeDevices {
public:
  FreeDevices(int nodes, int devices_per_node, int nodes_per_leaf);

  int free() const { return free_; }
  // Takes devices, of which there must be as many.
  JobPlacement take(int devices, PlacementKind kind);
  void give_back(const JobPlacement& placement);
  int leaves_of(const JobPlacement& placement) const;

private:
  JobPlacement packed(int devices, int first, int last) const;
  JobPlacement spread(int devices) const;
  JobPlacement on_fewest_leaves(int devices) const;
  JobPlacement over_leaves(int devices) const;
  int leaf_end(int leaf) const;

  int devices_per_node_ = 1, nodes_per_leaf_ = 1, free_ = 0;
  std::vector<int> free_on_;  // by node
  std::vector<int> free_on_leaf_;
};

// Nodes on a switch of the lowest level; all of them if the fabric has no such levels.
int nodes_per_leaf(const Cluster& cluster);

}  // namespace rehearse
