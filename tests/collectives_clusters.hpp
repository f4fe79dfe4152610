// Provides hand-made clusters for the tests of collectives.
#pragma once

#include <numeric>
#include <vector>

#include "models/text/error.hpp"
#include "topologies/cluster.hpp"

namespace rehearse::testing {

// Returns nodes of one device on one switch: each route has 2 links of 1 GB/s and takes 1 us.
inline ClusterParts star_of(int nodes, double latency_s = 1e-6) {
  ClusterParts parts;
  parts.name = "star";
  parts.node.device = device_preset("a100-80");
  parts.node.devices = 1;
  parts.node.interconnect = Node::Interconnect::none;
  parts.node.nic_bandwidth = 1e9;
  parts.fabric.latency_s = latency_s;
  parts.nodes = nodes;
  return parts;
}

// Returns nodes of 8 devices on an NVSwitch of 12 GB/s and 0.5 us, with 4 NICs of 1 GB/s, on one switch.
inline ClusterParts dgx_like(int nodes) {
  ClusterParts parts = star_of(nodes);
  parts.name = "dgx-like";
  parts.node.devices = 8;
  parts.node.interconnect = Node::Interconnect::nvswitch;
  parts.node.device_bandwidth = 12e9;
  parts.node.device_latency_s = 0.5e-6;
  parts.node.nics = 4;
  return parts;
}

// Returns a torus with links of 1 GB/s and 1 us per hop between neighbours; nothing in the nodes limits them.
inline ClusterParts torus_of(std::vector<int> dims, int devices = 1) {
  ClusterParts parts = star_of(std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()));
  parts.name = "torus";
  if (devices > 1) {
    parts.node.devices = devices;
    parts.node.interconnect = Node::Interconnect::nvswitch;
    parts.node.device_bandwidth = 12e9;
  }
  parts.node.nic_bandwidth = 1e12;
  parts.fabric.kind = Fabric::Kind::torus;
  parts.fabric.link_bandwidth = 1e9;
  parts.fabric.dims = std::move(dims);
  return parts;
}

inline std::vector<Endpoint> all_devices(const Cluster& cluster) {
  std::vector<Endpoint> all(static_cast<std::size_t>(cluster.devices()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace rehearse::testing
