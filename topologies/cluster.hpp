// Where it is trained: nodes full of devices, a fabric between them, and the route of every transfer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/document.hpp"
#include "topologies/device.hpp"
#include "topologies/power.hpp"

namespace rehearse {

using LinkId = int;  // one direction of a cable

// What sends and receives: a device, or a node's processor (parameter servers live there).
// Endpoints 0 .. devices-1 are the devices, node by node; behind them the processors of the nodes,
// "node3.cpu"; behind those the processors of the dedicated server nodes, "server0.cpu".
using Endpoint = int;

struct Node {
  Device device;
  int devices = 8;
  enum class Interconnect { none, nvswitch, nvlink_mesh, pcie } interconnect = Interconnect::nvswitch;
  double device_bandwidth = 0;  // bytes/s a direction: device to NVSwitch, or one NVLink of the mesh
  // What both ends' NICs and their software add to the latency of a message between nodes; it is that of the
  // NIC on which the message leaves.
  double nic_latency_s = 0;
  // One hop between two devices of the node. It is the latency of the link on which the hop starts (NVLink
  // out; PCIe out where devices talk over PCIe); the links that end a hop have none.
  double device_latency_s = 0;
  struct MeshLink {
    int a = 0, b = 0, count = 1;
  };
  std::vector<MeshLink> mesh;  // nvlink_mesh: pairs and their number of NVLinks
  // Device orders in which rings run inside a node, as NCCL finds them; empty: 0, 1, 2, ...
  // On a mesh every order is also used backwards.
  std::vector<std::vector<int>> rings;
  // bytes/s a direction, device to NIC; 0: PCIe stands in no route. A processor has a root port per NIC,
  // taken together as one link.
  double pcie_bandwidth = 0;
  // PCIe switches between the devices and the processor, innermost level first. Each joins `devices` devices,
  // counted from the first, and has an uplink to the level above; of the last level, to the processor. NICs
  // hang at the innermost switches if there is one for each, else at the processor.
  struct PcieSwitches {
    int devices = 2;
    double bandwidth = 0;  // bytes/s a direction of an uplink
  };
  std::vector<PcieSwitches> pcie_switches;
  int nics = 1;
  double nic_bandwidth = 0;  // bytes/s a direction
  int cpu_cores = 1;
  double cpu_memory_bandwidth = 0;  // bytes/s of all the node's processors; 0: a core's (cpu-core) for each
  // Host memory and NVMe, for offloading. 0 means unknown; host_links_bandwidth 0 means no shared link.
  double cpu_memory_bytes = 0;
  double host_link_bandwidth = 0;   // bytes/s a direction that copies of one device alone reach
  double host_links_bandwidth = 0;  // the same of all devices of the node together
  double nvme_read_bandwidth = 0, nvme_write_bandwidth = 0;  // bytes/s of all drives of the node
  NodePower power;
  // Of the whole machine, where a scenario uses fewer (devices_per_node); 0: `devices`, `nics`.
  int whole_devices = 0, whole_nics = 0;
};

struct Fabric {
  enum class Kind {
    single_switch,
    leaf_spine,
    links,
    fat_tree,
    rail,
    ring,
    torus,
    dragonfly
  } kind = Kind::single_switch;
  int nodes_per_leaf = 0;  // leaf_spine, rail (nodes of a group); follows from radix and oversubscription
  int spines = 0;
  // Bandwidth of the NICs that share an uplink of a leaf (or edge) over that of the uplink. The parts say
  // which is asked for; a finished cluster, which its whole cables give.
  double oversubscription = 1, asked_oversubscription = 1;
  double link_bandwidth = 0;    // bytes/s a direction of one cable, from which `spines` follows; 0: the NICs'
  std::int64_t spine_fold = 0;  // topologies/uplinks.hpp; 0 if the spines are given
  int radix = 0;                // fat_tree: ports of a switch, even
  std::vector<int> dims;        // torus: places along each dimension; those without a node relay
  int groups = 0;               // dragonfly; 0: as many as the nodes fill
  int routers_per_group = 0, nodes_per_router = 0;  // dragonfly
  double global_bandwidth = 0;  // dragonfly: bytes/s a direction between two groups; 0: as link_bandwidth
  double latency_s = 0;         // one hop: NIC to switch, switch to switch, or (ring, torus) node to node
  enum class Routing { d_mod_k, ecmp_hash } routing = Routing::d_mod_k;
  bool sharp = false;  // its switches sum what nodes send (NVIDIA SHARP), and NCCL may use it
  PortPower port_power;
};

struct SlowLink {
  std::string name;
  double factor = 1;
};
struct SlowDevice {
  int device = 0;
  double factor = 1;
};
// A device or link that is slower (or faster) than its kind.
struct SlowPart {
  std::string name;           // "node2.gpu1", "leaf3-spine1"
  double factor = 1;          // on its speed or bandwidth
  Endpoint device = -1;       // -1: a link
  std::vector<LinkId> links;  // its directions
};

inline constexpr std::array<std::string_view, 8> kFabricNames = {
    "switch", "leaf-spine", "links", "fat-tree", "rail", "ring", "torus", "dragonfly"};

// What a link is: NVLink or PCIe, a network card's, or behind it; and whether it is a server node's own.
struct LinkPlace {
  enum class Kind { inside_node, network_card, fabric } kind = Kind::fabric;
  bool at_server = false;
};

class Cluster {
public:
  std::string name;     // "dgx-a100"
  std::string changes;  // ", but for nic_gbps": in which keys a scenario differs from the preset or file
  std::string title;    // "128 x dgx-a100 (1,024 GPUs)"
  std::vector<std::string> sources;
  Basis network_basis = Basis::published;
  std::vector<SlowPart> slow_parts;  // in the order of the scenario, devices first

  virtual ~Cluster() = default;
  const Node& node() const { return node_; }
  const Fabric& fabric() const { return fabric_; }
  int nodes() const { return nodes_; }
  int server_nodes() const { return server_nodes_; }
  int devices() const { return nodes_ * node_.devices; }
  int node_of(Endpoint e) const;  // server nodes come after the device nodes
  // Local number inside the node; 0 for a processor.
  int local_of(Endpoint e) const;
  Endpoint processor_of_node(int node) const { return devices() + node; }
  Endpoint server_processor(int server_node) const { return devices() + nodes_ + server_node; }
  std::string endpoint_name(Endpoint e) const;  // "node3.gpu2", "node3.cpu", "server0.cpu"
  double device_factor(Endpoint e) const;       // 1, or what `slow` says (processors: 1)

  // Ports of switches that cables lead to: those of NICs, and two for each cable between switches. One node
  // alone needs none.
  virtual std::int64_t switch_ports() const = 0;
  virtual int links() const = 0;
  virtual double bandwidth(LinkId l) const = 0;  // bytes/s, `slow` included
  virtual double latency_s(LinkId l) const = 0;
  virtual LinkPlace link_place(LinkId l) const = 0;
  bool inside_node(LinkId l) const { return link_place(l).kind == LinkPlace::Kind::inside_node; }
  // A direction of a cable: "node3.nic0.out", "leaf3-spine1" and "spine1-leaf3", "node0.gpu1.nvlink.in".
  virtual std::string link_name(LinkId l) const = 0;
  // Both directions for the name of a cable ("node3.nic0", "leaf3-spine1" in either order), one for the name
  // of a direction with .in or .out; empty if there is none.
  virtual std::vector<LinkId> find_links(const std::string& name) const = 0;
  // Appends the links from `from` to `to`, in order; nothing if they are the same endpoint. Between nodes the
  // transfer leaves and enters through NIC number `rail` of both nodes; rail < 0: each end's own NIC (the one
  // nearest to its device); std::out_of_range if the node has no such NIC. The latency of a route is the sum
  // of its links'. A device and its own node's processor are joined by PCIe (through the uplinks of the
  // switches between them, if the node has some, else through the processor's own link); without PCIe there
  // is no link between them.
  virtual void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const = 0;
  // NIC nearest to the device with this local number.
  int nic_of(int local) const;
  // Device nearest to this NIC: the one that hands over other devices' transfers where there is an NVSwitch
  // (PXN).
  int device_at_nic(int nic) const;

protected:
  Node node_;
  Fabric fabric_;
  int nodes_ = 1;
  int server_nodes_ = 0;
  std::map<int, double> device_factors_;
  double device_speed_ = 1, processor_speed_ = 1;  // factors on all of them (topologies/faster.hpp)
};

// Reads the [cluster] section of a scenario: a preset or file with overrides, nodes, slow devices and links;
// and finishes it.
std::shared_ptr<const Cluster> read_cluster(Section& section, const std::string& base_folder);
// Clusters are presets in topologies/presets/NAME.toml; dgx-a100.toml explains the keys.
std::vector<std::string> cluster_names();

// Makes a cluster from its parts; used by the readers and by tests.
struct ClusterParts {
  std::string name, changes;
  Node node;
  Fabric fabric;
  int nodes = 1;
  int server_nodes = 0;
  // Fabric kind `links`: ends are "nodeI", "serverI" or switch names. The cables carry the latency; the NICs'
  // own links stand in a route (with latency 0) only if nic_bandwidth is given. All nodes must be connected.
  struct GraphLink {
    std::string a, b;
    double bandwidth = 0, latency_s = 0;
    Place place;
  };
  std::vector<GraphLink> graph;
  std::vector<SlowLink> slow_links;
  std::vector<SlowDevice> slow_devices;
  std::vector<std::string> sources;
  Basis network_basis = Basis::published;
  Place place;  // for errors
};
// InputError if the parts do not make a cluster of at most a million endpoints.
std::shared_ptr<const Cluster> make_cluster(const ClusterParts& parts);

// The rings along which a collective runs over `members`: `channels` orders of the members (endpoints),
// rotated inside each node so that successive channels enter by different NICs; rails[c] is the NIC that
// channel c uses between nodes (-1: each end's own).
struct Rings {
  std::vector<std::vector<Endpoint>> orders;
  std::vector<int> rails;
  // By channel: hops {from, through, to} of a mesh that go over NVLink through another member, as NCCL's do
  // where two members have no NVLink between them.
  std::vector<std::vector<std::array<Endpoint, 3>>> relays;
};
// `channels` = 0: as many as the members of a node have NICs (one node: 1, on a mesh as many rings as the
// members' NVLinks carry, both ways counted; if none closes, hops may go through members that relay). More
// than make a difference are not made: on several nodes one a NIC, on a mesh one a NIC and ring; on one node
// as many as for 0.
Rings ring_orders(const Cluster& cluster, const std::vector<Endpoint>& members, int channels);

}  // namespace rehearse
