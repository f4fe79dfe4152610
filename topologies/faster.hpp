// Makes a cluster with some parts faster or slower, to answer what-if questions.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// Factors on rates; above 1 is faster.
struct Faster {
  double devices = 1;              // on everything that devices compute
  double device_memory = 1;        // only on the bandwidth of their memory
  double intra_node_links = 1;     // NVLink and PCIe
  double network_links = 1;        // network cards and the links of the fabric
  double processors = 1;           // of the nodes, on which parameter servers run
  double host = 1;                 // host memory and NVMe, if they store optimizer state
  double storage = 1;              // the links of the storage
  std::vector<int> at_full_speed;  // indices into Cluster::slow_parts; removes their factors
  std::optional<Device> device;    // replaces the nodes' device
};

// Returns a cluster with the same endpoints, links and routes.
std::shared_ptr<const Cluster> faster(std::shared_ptr<const Cluster> cluster, const Faster& factors);

}  // namespace rehearse
