// A cluster with some of its parts faster or slower: what if the network cards were?
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// Factors on rates; above 1 is faster.
struct Faster {
  double devices = 1;              // all that devices compute
  double device_memory = 1;        // the bandwidth of their memory alone
  double intra_node_links = 1;     // NVLink and PCIe
  double network_links = 1;        // network cards and the links behind them
  double processors = 1;           // of the nodes, where parameter servers compute
  double host = 1;                 // host memory and NVMe, where optimizer state is kept there
  std::vector<int> at_full_speed;  // of Cluster::slow_parts: these lose their factors
  std::optional<Device> device;    // takes the place of the nodes' own
};

// The same endpoints, links and routes.
std::shared_ptr<const Cluster> faster(std::shared_ptr<const Cluster> cluster, const Faster& factors);

}  // namespace rehearse
