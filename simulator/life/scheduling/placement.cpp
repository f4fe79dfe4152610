#include "simulator/life/scheduling/placement.hpp"

#include <algorithm>
#include <numeric>

namespace rehearse {

int nodes_per_leaf(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  switch (fabric.kind) {
    case Fabric::Kind::leaf_spine:
    case Fabric::Kind::rail:
      if (fabric.nodes_per_leaf > 0) return fabric.nodes_per_leaf;
      break;
    case Fabric::Kind::fat_tree:
      if (fabric.radix > 1) return fabric.radix / 2;
      break;
    case Fabric::Kind::dragonfly:
      if (fabric.nodes_per_router > 0) return fabric.nodes_per_router;
      break;
    case Fabric::Kind::single_switch:
    case Fabric::Kind::links:
    case Fabric::Kind::ring:
    case Fabric::Kind::torus:
      break;
  }
  return cluster.nodes();
}

FreeDevices::FreeDevices(int nodes, int devices_per_node, int nodes_per_leaf)
    : devices_per_node_(devices_per_node),
      nodes_per_leaf_(nodes_per_leaf),
      free_(nodes * devices_per_node),
      free_on_(static_cast<std::size_t>(nodes), devices_per_node) {
  for (int first = 0; first < nodes; first += nodes_per_leaf)
    free_on_leaf_.push_back(std::min(nodes_per_leaf, nodes - first) * devices_per_node);
}

int FreeDevices::leaf_end(int leaf) const {
  return std::min((leaf + 1) * nodes_per_leaf_, static_cast<int>(free_on_.size()));
}

// Takes the nodes with most free devices whole while that is needed; of those that can take the rest, the one
// with the fewest.
JobPlacement FreeDevices::packed(int devices, int first, int last) const {
  std::vector<std::vector<int>> by_free(static_cast<std::size_t>(devices_per_node_) + 1);
  for (int node = first; node < last; ++node)
    by_free[static_cast<std::size_t>(free_on_[node])].push_back(node);
  JobPlacement placement;
  std::vector<std::size_t> used(by_free.size(), 0);
  while (devices > 0) {
    int most = devices_per_node_;
    while (used[most] == by_free[most].size()) --most;
    int chosen = most;
    if (devices <= most)
      for (chosen = devices; used[chosen] == by_free[chosen].size();) ++chosen;
    const int node = by_free[chosen][used[chosen]++], taken = std::min(devices, chosen);
    placement.push_back({node, taken});
    devices -= taken;
  }
  return placement;
}

JobPlacement FreeDevices::spread(int devices) const {
  // Levels the free devices: nodes keep at most `level`, and some of them one more.
  const auto taken_at = [&](int level) {
    return std::accumulate(free_on_.begin(), free_on_.end(), 0,
                           [&](int sum, int free) { return sum + std::max(0, free - level); });
  };
  int level = devices_per_node_;
  while (taken_at(level) < devices) --level;
  int too_many = taken_at(level) - devices;
  JobPlacement placement;
  for (int node = static_cast<int>(free_on_.size()) - 1; node >= 0; --node) {
    int taken = std::max(0, free_on_[node] - level);
    if (taken > 0 && too_many > 0) {
      --taken;
      --too_many;
    }
    if (taken > 0) placement.push_back({node, taken});
  }
  return placement;
}

JobPlacement FreeDevices::on_fewest_leaves(int devices) const {
  JobPlacement best;
  int best_left = 0;
  for (int leaf = 0; leaf < static_cast<int>(free_on_leaf_.size()); ++leaf) {
    const int left = free_on_leaf_[leaf] - devices;
    if (left < 0) continue;
    JobPlacement here = packed(devices, leaf * nodes_per_leaf_, leaf_end(leaf));
    if (best.empty() || here.size() < best.size() || (here.size() == best.size() && left < best_left)) {
      best = std::move(here);
      best_left = left;
    }
  }
  return best.empty() ? over_leaves(devices) : best;
}

// No leaf suffices: takes the leaves with most free devices whole, then as few nodes of one that has the
// rest.
JobPlacement FreeDevices::over_leaves(int devices) const {
  std::vector<int> leaves(free_on_leaf_.size());
  std::iota(leaves.begin(), leaves.end(), 0);
  std::stable_sort(leaves.begin(), leaves.end(),
                   [&](int a, int b) { return free_on_leaf_[a] > free_on_leaf_[b]; });
  JobPlacement placement;
  for (std::size_t i = 0; devices > 0; ++i) {
    int leaf = leaves[i];
    if (devices <= free_on_leaf_[leaf])  // the tightest of those that suffice
      for (std::size_t k = i; k < leaves.size() && free_on_leaf_[leaves[k]] >= devices; ++k) leaf = leaves[k];
    const int here = std::min(devices, free_on_leaf_[leaf]);
    const JobPlacement part = packed(here, leaf * nodes_per_leaf_, leaf_end(leaf));
    placement.insert(placement.end(), part.begin(), part.end());
    devices -= here;
  }
  return placement;
}

JobPlacement FreeDevices::take(int devices, PlacementKind kind) {
  JobPlacement placement;
  switch (kind) {
    case PlacementKind::packed:
      placement = packed(devices, 0, static_cast<int>(free_on_.size()));
      break;
    case PlacementKind::spread:
      placement = spread(devices);
      break;
    case PlacementKind::topology:
      placement = on_fewest_leaves(devices);
      break;
  }
  std::sort(placement.begin(), placement.end(),
            [](const NodeShare& a, const NodeShare& b) { return a.node < b.node; });
  for (const NodeShare& share : placement) {
    free_on_[share.node] -= share.devices;
    free_on_leaf_[share.node / nodes_per_leaf_] -= share.devices;
  }
  free_ -= devices;
  return placement;
}

void FreeDevices::give_back(const JobPlacement& placement) {
  for (const NodeShare& share : placement) {
    free_on_[share.node] += share.devices;
    free_on_leaf_[share.node / nodes_per_leaf_] += share.devices;
    free_ += share.devices;
  }
}

int FreeDevices::leaves_of(const JobPlacement& placement) const {
  int leaves = 0, last = -1;
  for (const NodeShare& share : placement)
    if (share.node / nodes_per_leaf_ != last) {
      last = share.node / nodes_per_leaf_;
      ++leaves;
    }
  return leaves;
}

}  // namespace rehearse
