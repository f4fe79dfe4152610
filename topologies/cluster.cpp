#include "topologies/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "topologies/cabling.hpp"
#include "topologies/network.hpp"
#include "topologies/uplinks.hpp"

namespace rehearse {
namespace {

constexpr std::int64_t kMostDevices = 2'097'152;     // 2^21
constexpr std::int64_t kMostTorusNodes = 2'000'000;  // of which 1,000,000 along a dimension
constexpr int kMostMeshDevices = 64;
constexpr int kMostGraphNodes = 65'536;

std::string with_commas(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

bool finite(double x) {
  return std::isfinite(x) && x >= 0;
}

class Checker {
public:
  explicit Checker(const ClusterParts& parts) : parts_(parts), node_(parts.node), fabric_(parts.fabric) {}

  void check() const {
    sizes();
    if (node_.interconnect == Node::Interconnect::nvlink_mesh) mesh();
    rings();
    fabric();
    for (const auto& slow : parts_.slow_devices)
      need(slow.device >= 0 && slow.device < parts_.nodes * node_.devices && positive(slow.factor),
           fmt::format("a slow device is number {} with factor {}", slow.device, slow.factor),
           fmt::format("numbers 0 to {}, factors above 0", parts_.nodes * node_.devices - 1));
    for (const auto& slow : parts_.slow_links)
      need(positive(slow.factor), fmt::format("a slow link has factor {}", slow.factor), "factors above 0");
  }

private:
  static bool positive(double x) { return std::isfinite(x) && x > 0; }

  void need(bool good, const std::string& found, const std::string& allowed) const {
    if (!good) throw InputError(parts_.place, found + "; allowed: " + allowed);
  }

  void sizes() const {
    need(parts_.nodes >= 1 && node_.devices >= 1 && parts_.server_nodes >= 0,
         fmt::format("the cluster has {} nodes of {} devices and {} server nodes", parts_.nodes,
                     node_.devices, parts_.server_nodes),
         "at least one node and one device, and no negative number");
    const std::int64_t endpoints =
        std::int64_t{parts_.nodes} * (std::int64_t{node_.devices} + 1) + parts_.server_nodes;
    need(std::int64_t{parts_.nodes} * node_.devices <= kMostDevices && endpoints <= 2 * kMostDevices,
         fmt::format("the cluster has {} nodes of {} devices and {} server nodes", parts_.nodes,
                     node_.devices, parts_.server_nodes),
         fmt::format("at most {} devices, and {} devices and processors", with_commas(kMostDevices),
                     with_commas(2 * kMostDevices)));
    need(node_.nics >= 1 && node_.nics <= 256, fmt::format("a node has {} NICs", node_.nics), "1 to 256");
    need(finite(node_.device_bandwidth) && finite(node_.pcie_bandwidth) && finite(node_.nic_bandwidth) &&
             finite(node_.device_latency_s) && finite(node_.nic_latency_s) && finite(fabric_.latency_s) &&
             finite(fabric_.link_bandwidth),
         "a bandwidth or latency is negative or not a number", "0 or more");
    using enum Node::Interconnect;
    need(node_.devices == 1 || node_.interconnect != none,
         fmt::format("a node has {} devices without an interconnect", node_.devices),
         "an interconnect (nvswitch, nvlink-mesh, pcie) or one device");
    need(node_.interconnect != nvswitch || node_.device_bandwidth > 0, "the NVSwitch has no bandwidth",
         "a device bandwidth above 0");
    need(node_.interconnect != pcie || node_.pcie_bandwidth > 0, "PCIe has no bandwidth",
         "a bandwidth above 0");
    int below = 1;
    for (const auto& level : node_.pcie_switches) {
      need(node_.pcie_bandwidth > 0, "there are PCIe switches but no PCIe", "a PCIe bandwidth above 0");
      need(
          level.devices > below && level.devices % below == 0 && level.devices <= kMostDevices,
          fmt::format("a PCIe switch joins {} devices", level.devices),
          below > 1 ? fmt::format("a multiple of {}, the devices of a switch below it", below) : "2 or more");
      need(positive(level.bandwidth), fmt::format("a PCIe switch's uplink has {} bytes/s", level.bandwidth),
           "a bandwidth above 0");
      below = level.devices;
    }
    need(node_.pcie_switches.size() <= 8,
         fmt::format("{} levels of PCIe switches", node_.pcie_switches.size()), "at most 8");
    need(finite(node_.pcie_efficiency) && node_.pcie_efficiency > 0 && node_.pcie_efficiency <= 1,
         "PCIe's efficiency is not a share", "above 0, at most 1");
    need(finite(node_.nic_efficiency) && node_.nic_efficiency > 0 && node_.nic_efficiency <= 1,
         "the NICs' efficiency is not a share", "above 0, at most 1");
    need(node_.sockets >= 1 && node_.sockets <= 64, fmt::format("a node has {} sockets", node_.sockets),
         "1 to 64");
    if (node_.sockets == 1) return;
    need(node_.pcie_bandwidth > 0 && positive(node_.inter_socket_bandwidth),
         fmt::format("{} sockets without bandwidth", node_.sockets),
         "bandwidths of PCIe and between sockets above 0");
    const int all = std::max(node_.whole_devices, node_.devices);
    need(node_.pcie_switches.empty() || (all + node_.sockets - 1) / node_.sockets % below == 0,
         fmt::format("a PCIe switch joins {} devices of a node with {} devices and {} sockets", below, all,
                     node_.sockets),
         "switches of which each hangs at one socket");
  }

  void mesh() const {
    need(node_.devices <= kMostMeshDevices, fmt::format("an NVLink mesh has {} devices", node_.devices),
         "at most 64");
    need(node_.device_bandwidth > 0, "an NVLink has no bandwidth", "a bandwidth above 0");
    std::set<std::pair<int, int>> pairs;
    for (const auto& m : node_.mesh) {
      const std::string found = fmt::format("{} NVLinks join devices {} and {}", m.count, m.a, m.b);
      need(m.a >= 0 && m.b >= 0 && m.a < node_.devices && m.b < node_.devices && m.a != m.b && m.count >= 1 &&
               m.count <= 64,
           found, fmt::format("1 to 64 between two different devices of 0 to {}", node_.devices - 1));
      need(pairs.insert(std::minmax(m.a, m.b)).second, found + " a second time", "every pair once");
    }
    const auto all = static_cast<std::size_t>(node_.devices) * (node_.devices - 1) / 2;
    need(pairs.size() == all || node_.pcie_bandwidth > 0,
         fmt::format("NVLinks join {} of {} pairs of devices but there is no PCIe", pairs.size(), all),
         "a PCIe bandwidth for the other pairs");
  }

  void rings() const {
    for (std::vector<int> ring : node_.rings) {
      std::sort(ring.begin(), ring.end());
      bool all = static_cast<int>(ring.size()) == node_.devices;
      for (std::size_t i = 0; all && i < ring.size(); ++i) all = ring[i] == static_cast<int>(i);
      need(all, fmt::format("a ring orders {} devices", ring.size()),
           fmt::format("orders that contain each of the devices 0 to {} once", node_.devices - 1));
    }
  }

  void fabric() const {
    if (fabric_.kind == Fabric::Kind::links) {
      need(parts_.nodes + parts_.server_nodes <= kMostGraphNodes,
           fmt::format("a fabric of single links joins {} nodes", parts_.nodes + parts_.server_nodes),
           fmt::format("at most {}", kMostGraphNodes));
      need(parts_.graph.size() <= 1'000'000, fmt::format("the fabric has {} links", parts_.graph.size()),
           "at most 1,000,000");
      for (const auto& link : parts_.graph)
        if (!positive(link.bandwidth) || !finite(link.latency_s))
          throw InputError(link.place,
                           fmt::format("the link from {} to {} has {} bytes/s and {} s; allowed: a bandwidth "
                                       "above 0, a latency of 0 or more",
                                       link.a, link.b, link.bandwidth, link.latency_s));
      return;
    }
    if (joins_nodes(fabric_.kind)) return torus();
    need(node_.nic_bandwidth > 0 || parts_.nodes + parts_.server_nodes == 1, "the NICs have no bandwidth",
         "a NIC bandwidth above 0, or a single node");
    if (fabric_.kind == Fabric::Kind::single_switch) return;
    need(positive(fabric_.oversubscription),
         fmt::format("the oversubscription is {}", fabric_.oversubscription), "numbers above 0");
    need(node_.nic_bandwidth > 0, "the NICs have no bandwidth", "a NIC bandwidth above 0");
    if (fabric_.kind == Fabric::Kind::fat_tree) return fat_tree();
    if (fabric_.kind == Fabric::Kind::dragonfly) return dragonfly();
    need(fabric_.nodes_per_leaf >= 1, fmt::format("a leaf has {} nodes", fabric_.nodes_per_leaf),
         "1 and more");
    need(fabric_.spines >= 0 && fabric_.spines <= kMostSpines,
         fmt::format("there are {} spines", fabric_.spines),
         fmt::format("1 to {}, or 0: as many as a leaf needs", kMostSpines));
  }

  std::int64_t all_nodes() const { return std::int64_t{parts_.nodes} + parts_.server_nodes; }

  void torus() const {
    need(fabric_.link_bandwidth > 0 || node_.nic_bandwidth > 0, "the cables between nodes have no bandwidth",
         "a bandwidth of the cables or of the NICs above 0");
    if (fabric_.kind == Fabric::Kind::ring) return;
    std::int64_t product = 1;
    std::string dims;
    for (const int size : fabric_.dims) {
      need(size >= 1 && size <= kMostTorusNodes / 2,
           fmt::format("a dimension of the torus has {} nodes", size), "1 to 1,000,000");
      product = std::min(product * size, kMostTorusNodes + 1);
      dims += (dims.empty() ? "" : " x ") + std::to_string(size);
    }
    need(!fabric_.dims.empty() && fabric_.dims.size() <= 8,
         fmt::format("the torus has {} dimensions", fabric_.dims.size()), "1 to 8");
    need(product >= all_nodes() && product <= kMostTorusNodes,
         fmt::format("a torus of {} joins {} nodes", dims, all_nodes()),
         fmt::format("dims whose product is {} to 2,000,000", all_nodes()));
  }

  void fat_tree() const {
    need(fabric_.radix >= 2 && fabric_.radix <= 1024 && fabric_.radix % 2 == 0,
         fmt::format("the switches of a fat tree have {} ports", fabric_.radix), "2 to 1,024, even");
    Fabric fabric = fabric_;
    if (fabric.link_bandwidth <= 0) fabric.link_bandwidth = node_.nic_bandwidth;
    const std::int64_t most =
        std::int64_t{fabric_.radix} * (fabric_.radix / 2) * ports_down(fabric, node_) / node_.nics;
    need(all_nodes() <= most,
         fmt::format("a fat tree of {} ports a switch joins {} nodes of {} NICs", fabric_.radix, all_nodes(),
                     node_.nics),
         most > 0 ? fmt::format("at most {} nodes", most) : "a larger radix");
  }

  void dragonfly() const {
    need(fabric_.routers_per_group >= 1 && fabric_.nodes_per_router >= 1 && fabric_.groups >= 0 &&
             fabric_.routers_per_group <= 4096 && fabric_.groups <= 16'384 &&
             fabric_.nodes_per_router <= kMostDevices,
         fmt::format("a dragonfly has {} groups of {} routers with {} nodes each", fabric_.groups,
                     fabric_.routers_per_group, fabric_.nodes_per_router),
         "up to 16,384 groups of 1 to 4,096 routers with 1 or more nodes");
    need(finite(fabric_.global_bandwidth), "a bandwidth is negative or not a number", "0 or more");
    const std::int64_t a_group = std::int64_t{fabric_.routers_per_group} * fabric_.nodes_per_router;
    const std::int64_t groups = fabric_.groups > 0 ? fabric_.groups : 16'384;
    need(all_nodes() <= groups * a_group,
         fmt::format("a dragonfly of {} groups with {} nodes each joins {} nodes", groups, a_group,
                     all_nodes()),
         fmt::format("at most {} nodes", groups * a_group));
  }

  const ClusterParts& parts_;
  const Node& node_;
  const Fabric& fabric_;
};

}  // namespace

int Cluster::group_of_node(int node) const {
  int group = -1;
  while (group + 1 < static_cast<int>(groups_.size()) &&
         groups_[static_cast<std::size_t>(group) + 1].first_node <= node)
    ++group;
  return group;
}

const Device& Cluster::device_of_node(int node) const {
  const int group = group_of_node(node);
  return group < 0 ? node_.device : groups_[static_cast<std::size_t>(group)].device;
}

const Storage& Cluster::storage(int which) const {
  static const Storage kNone;
  return which < static_cast<int>(storages_.size()) ? storages_[static_cast<std::size_t>(which)] : kNone;
}

int Cluster::storage_endpoints(int which) const {
  const Storage& its = storage(which);
  switch (its.kind) {
    case Storage::Kind::none:
      return 0;
    case Storage::Kind::local:
      return nodes_;
    case Storage::Kind::shared:
      return std::max(1, its.servers);
  }
  return 0;
}

Endpoint Cluster::storage_endpoint(int number, int which) const {
  Endpoint first = devices() + nodes_ + server_nodes_;
  for (int before = 0; before < which; ++before) first += storage_endpoints(before);
  return first + number;
}

Cluster::StoragePlace Cluster::storage_place(Endpoint e) const {
  StoragePlace place{0, e - storage_endpoint(0)};
  for (int endpoints = 0; place.number >= (endpoints = storage_endpoints(place.which)) && endpoints > 0;
       ++place.which)
    place.number -= endpoints;
  return place;
}

int Cluster::node_of(Endpoint e) const {
  if (e < devices()) return e / node_.devices;
  if (!is_storage(e)) return e - devices();
  const StoragePlace place = storage_place(e);
  if (storage(place.which).kind == Storage::Kind::local) return place.number;
  if (storage(place.which).servers == 0) return -1;
  int node = nodes_ + server_nodes_ + place.number;
  for (int before = 0; before < place.which; ++before) node += storage(before).servers;
  return node;
}

int Cluster::local_of(Endpoint e) const {
  return e < devices() ? e % node_.devices : 0;
}

std::string Cluster::endpoint_name(Endpoint e) const {
  const int node = node_of(e);
  if (e < 0 || e >= endpoints()) throw std::out_of_range(fmt::format("endpoint {}", e));
  if (is_storage(e)) {
    const StoragePlace place = storage_place(e);
    const Storage& its = storage(place.which);
    return its.kind == Storage::Kind::local ? fmt::format("node{}.drive", node)
                                            : fmt::format("{}{}", its.name, place.number);
  }
  if (e < devices()) return fmt::format("node{}.gpu{}", node, local_of(e));
  return node < nodes_ ? fmt::format("node{}.cpu", node) : fmt::format("server{}.cpu", node - nodes_);
}

double Cluster::device_factor(Endpoint e) const {
  const auto it = device_factors_.find(e);
  return (it == device_factors_.end() ? 1 : it->second) * (e < devices() ? device_speed_ : processor_speed_);
}

int Node::socket_of_device(int local) const {
  const int all = std::max(whole_devices, devices), each = (all + sockets - 1) / sockets;
  return local / each;
}

int Node::socket_of_nic(int nic) const {
  const int all = std::max(whole_nics, nics);
  return all < sockets ? nic : static_cast<int>(std::int64_t{nic} * sockets / all);
}

int Cluster::nic_of(int local) const {
  return static_cast<int>(std::int64_t{local} * node_.nics / node_.devices);
}

int Cluster::device_at_nic(int nic) const {
  const std::int64_t scaled = std::int64_t{nic} * node_.devices;
  // The first device whose own NIC it is; with more NICs than devices, the device that they are assigned to.
  return static_cast<int>(node_.nics <= node_.devices ? (scaled + node_.nics - 1) / node_.nics
                                                      : scaled / node_.nics);
}

namespace {

// Completes spines, oversubscription and bandwidth. Derived spines and edges have complete cables of
// link_bandwidth, and the oversubscription becomes what those give. If the spines are given, the bandwidth of
// the cables is derived instead.
void lay_cables(Fabric& fabric, const Node& node) {
  fabric.asked_oversubscription = fabric.oversubscription;
  if (fabric.kind == Fabric::Kind::fat_tree) {
    const int down = ports_down(fabric, node);
    fabric.oversubscription = down * node.nic_bandwidth / ((fabric.radix - down) * fabric.link_bandwidth);
  }
  if (fabric.kind != Fabric::Kind::leaf_spine && fabric.kind != Fabric::Kind::rail) return;
  const std::int64_t ports = ports_below_leaf(fabric, node);
  if (fabric.spines > 0) {
    fabric.link_bandwidth =
        static_cast<double>(ports) * node.nic_bandwidth / fabric.oversubscription / fabric.spines;
    return;
  }
  const Uplinks uplinks = fewest_uplinks(fabric, node, ports);
  fabric.spines = uplinks.spines;
  fabric.spine_fold = uplinks.fold;
  fabric.oversubscription = uplinks.ports_per_cable * node.nic_bandwidth / fabric.link_bandwidth;
}

// Returns the slow parts, with the factors of equal names multiplied.
std::vector<SlowPart> slow_parts_of(const ClusterParts& parts, const Cluster& cluster) {
  std::vector<SlowPart> all;
  const auto part = [&](const std::string& name, double factor) -> SlowPart& {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const SlowPart& p) { return p.name == name; });
    SlowPart& p = known != all.end() ? *known : all.emplace_back();
    p.name = name;
    p.factor *= factor;
    return p;
  };
  for (const SlowDevice& slow : parts.slow_devices)
    part(cluster.endpoint_name(slow.device), slow.factor).device = slow.device;
  for (const SlowLink& slow : parts.slow_links)
    part(slow.name, slow.factor).links = cluster.find_links(slow.name);
  return all;
}

}  // namespace

std::shared_ptr<const Cluster> make_cluster(const ClusterParts& parts) {
  ClusterParts filled = parts;
  for (const ClusterParts::Group& group : parts.groups) filled.nodes += group.nodes;
  for (const Storage& storage : parts.storages) filled.server_nodes += storage.servers;
  Checker(filled).check();
  Fabric& fabric = filled.fabric;
  if (fabric.link_bandwidth <= 0) fabric.link_bandwidth = parts.node.nic_bandwidth;
  if (fabric.kind == Fabric::Kind::ring) fabric.dims = {filled.nodes + filled.server_nodes};
  if (fabric.kind == Fabric::Kind::dragonfly) {
    const std::int64_t a_group = std::int64_t{fabric.routers_per_group} * fabric.nodes_per_router;
    if (fabric.groups == 0)
      fabric.groups =
          static_cast<int>((std::int64_t{filled.nodes} + filled.server_nodes + a_group - 1) / a_group);
    if (fabric.global_bandwidth <= 0) fabric.global_bandwidth = fabric.link_bandwidth;
  }
  lay_cables(fabric, parts.node);
  auto cluster = std::make_shared<Network>(filled);
  cluster->slow_parts = slow_parts_of(parts, *cluster);
  const bool gpus = parts.node.device.compute_capability > 0;
  std::string others;
  for (const ClusterParts::Group& group : parts.groups)
    others += fmt::format(" + {} with {}", with_commas(group.nodes), group.device.name);
  cluster->title =
      fmt::format("{} x {}{}{} ({} {}{})", with_commas(parts.nodes), parts.name.empty() ? "node" : parts.name,
                  parts.changes, others, with_commas(cluster->devices()), gpus ? "GPU" : "device",
                  cluster->devices() == 1 ? "" : "s");
  return with_storages(std::move(cluster), parts.storages);
}

}  // namespace rehearse
