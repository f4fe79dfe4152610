// Tells which kinds of devices the ranks of a pipeline stage or of a replica are on.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

struct DeviceKind {
  int group = -1;     // of nodes, as Cluster::group_of_node() says
  double factor = 1;  // on its speed
  auto operator<=>(const DeviceKind&) const = default;
};
using DeviceKinds = std::set<DeviceKind>;

const Device& device_of(const Cluster& cluster, const DeviceKind& kind);

// The kinds of the devices of each stage and replica. Workers are on devices in order.
struct PlacedDevices {
  int stages = 1, replicas = 1;
  std::vector<DeviceKinds> kinds;  // by stage and replica
  const DeviceKinds& at(int stage, int replica) const {
    return kinds[static_cast<std::size_t>(stage * replicas + replica)];
  }
  DeviceKinds of_stage(int stage) const;
};
PlacedDevices placed_devices(const Scenario& scenario);

// Returns the seconds of each layer's passes on the slowest of these devices.
std::vector<double> layer_times_s(const Scenario& scenario, const std::vector<LayerCost>& layers,
                                  const DeviceKinds& kinds);

// Returns how long each replica computes for one sample on its slowest stage. `parts`: those of the model.
std::vector<double> replica_sample_s(const Scenario& scenario, const PlacedDevices& placed,
                                     const std::vector<LayerCost>& layers,
                                     const std::vector<LayerRange>& parts);

}  // namespace rehearse
