// Provides small clusters for the tests, and helpers that query them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

inline ClusterParts gpu_nodes(int nodes, int devices, int nics) {
  ClusterParts parts;
  parts.name = "test";
  parts.nodes = nodes;
  parts.node.devices = devices;
  parts.node.interconnect = devices > 1 ? Node::Interconnect::nvswitch : Node::Interconnect::none;
  parts.node.device_bandwidth = 300e9;
  parts.node.device_latency_s = 1e-6;
  parts.node.pcie_bandwidth = 32e9;
  parts.node.nics = nics;
  parts.node.nic_bandwidth = 25e9;
  parts.fabric.latency_s = 2e-6;
  return parts;
}

inline ClusterParts leaf_spine(int nodes, int devices, int nics, int nodes_per_leaf, int spines,
                               double ratio) {
  ClusterParts parts = gpu_nodes(nodes, devices, nics);
  parts.fabric.kind = Fabric::Kind::leaf_spine;
  parts.fabric.nodes_per_leaf = nodes_per_leaf;
  parts.fabric.spines = spines;
  parts.fabric.oversubscription = ratio;
  return parts;
}

// Returns nodes of four devices in a ring, similar to a DGX-1: 0-1 has two NVLinks, 1-2, 2-3 and 3-0 have
// one.
inline ClusterParts mesh_nodes(int nodes) {
  ClusterParts parts = gpu_nodes(nodes, 4, 2);
  parts.node.interconnect = Node::Interconnect::nvlink_mesh;
  parts.node.device_bandwidth = 25e9;
  parts.node.mesh = {{0, 1, 2}, {1, 2, 1}, {2, 3, 1}, {0, 3, 1}};
  return parts;
}

inline std::vector<LinkId> route_of(const Cluster& cluster, Endpoint from, Endpoint to, int rail = -1) {
  std::vector<LinkId> links;
  cluster.route(from, to, rail, links);
  return links;
}

inline std::vector<std::string> names_of(const Cluster& cluster, const std::vector<LinkId>& links) {
  std::vector<std::string> names;
  for (const LinkId l : links) names.push_back(cluster.link_name(l));
  return names;
}

inline double latency_of(const Cluster& cluster, const std::vector<LinkId>& links) {
  double seconds = 0;
  for (const LinkId l : links) seconds += cluster.latency_s(l);
  return seconds;
}

// Returns the other direction of the cable; -1 if the link's name does not denote two directions.
inline LinkId other_way(const Cluster& cluster, LinkId l) {
  std::string name = cluster.link_name(l);
  for (const std::string ending : {".out", ".in"})
    if (name.size() > ending.size() &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
      name.resize(name.size() - ending.size());
      break;
    }
  const std::vector<LinkId> both = cluster.find_links(name);
  if (both.size() != 2) return -1;
  return both[0] == l ? both[1] : both[0];
}

inline std::vector<Endpoint> first_devices(int count) {
  std::vector<Endpoint> members;
  for (int i = 0; i < count; ++i) members.push_back(i);
  return members;
}

inline std::shared_ptr<const Cluster> cluster_of(const std::string& text) {
  Document document = Document::parse_text(text, "lab.toml");
  Section root = document.root();
  Section section = root.section("cluster");
  return read_cluster(section, "");
}

}  // namespace rehearse
