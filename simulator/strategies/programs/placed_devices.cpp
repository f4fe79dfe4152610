#include "simulator/strategies/programs/placed_devices.hpp"

#include <algorithm>
#include <map>

#include "simulator/schedule/mesh.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

const Device& device_of(const Cluster& cluster, const DeviceKind& kind) {
  return kind.group < 0 ? cluster.node().device
                        : cluster.groups()[static_cast<std::size_t>(kind.group)].device;
}

DeviceKinds PlacedDevices::of_stage(int stage) const {
  DeviceKinds all;
  for (int replica = 0; replica < replicas; ++replica)
    all.insert(at(stage, replica).begin(), at(stage, replica).end());
  return all;
}

PlacedDevices placed_devices(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  const Mesh mesh(worker_axes(scenario.strategy));
  const int data = mesh.axis("data"), pipeline = mesh.axis("pipeline");
  PlacedDevices placed{scenario.strategy.pipeline, scenario.strategy.data, {}};
  placed.kinds.resize(static_cast<std::size_t>(placed.stages) * static_cast<std::size_t>(placed.replicas));
  for (int rank = 0; rank < std::min(mesh.size(), cluster.devices()); ++rank) {
    const int stage = mesh.coordinate(rank, pipeline), replica = mesh.coordinate(rank, data);
    placed.kinds[static_cast<std::size_t>(stage * placed.replicas + replica)].insert(
        {cluster.group_of_node(cluster.node_of(rank)), cluster.device_factor(rank)});
  }
  return placed;
}

std::vector<double> layer_times_s(const Scenario& scenario, const std::vector<LayerCost>& layers,
                                  const DeviceKinds& kinds) {
  std::vector<double> slowest(layers.size(), 0);
  for (const DeviceKind& kind : kinds)
    for (std::size_t i = 0; i < layers.size(); ++i)
      slowest[i] = std::max(slowest[i], layer_time_s(layers[i], device_of(*scenario.cluster, kind),
                                                     scenario.training.precision) /
                                            kind.factor);
  return slowest;
}

std::vector<double> replica_sample_s(const Scenario& scenario, const PlacedDevices& placed,
                                     const std::vector<LayerCost>& layers,
                                     const std::vector<LayerRange>& parts) {
  const PartPlacement placement = order_of(scenario.strategy.schedule).placement;
  std::map<DeviceKinds, std::vector<double>> known;  // times of the stages' layers
  std::vector<double> seconds;
  for (int replica = 0; replica < placed.replicas; ++replica) {
    double slowest = 0;
    for (int stage = 0; stage < placed.stages; ++stage) {
      const auto [times, fresh] = known.try_emplace(placed.at(stage, replica));
      if (fresh) {
        times->second.assign(static_cast<std::size_t>(placed.stages), 0);
        const std::vector<double> of_layers = layer_times_s(scenario, layers, times->first);
        for (int part = 0; part < static_cast<int>(parts.size()); ++part)
          for (int i = parts[part].first; i <= parts[part].last; ++i)
            times->second[stage_of_part(placement, placed.stages, part)] += of_layers[i];
      }
      slowest = std::max(slowest, times->second[static_cast<std::size_t>(stage)]);
    }
    seconds.push_back(slowest / scenario.training.micro_batch);
  }
  return seconds;
}

}  // namespace rehearse
