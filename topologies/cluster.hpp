// Describes the machine to train on: nodes with devices, a fabric between them, and the route of every
// transfer.
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
#include "topologies/storage.hpp"

namespace rehearse {

using LinkId = int;  // one direction of a cable

// A sender or receiver: a device, or a node's processor (on which parameter servers run). Endpoints 0 ..
// devices-1 are the devices, node by node; then come the processors of the nodes, "node3.cpu", those of the
// dedicated server nodes, "server0.cpu", and its storages, one after the other: "node3.drive", or "storage0"
// and so on.
using Endpoint = int;

struct Node {
  Device device;
  int devices = 8;
  enum class Interconnect { none, nvswitch, nvlink_mesh, pcie } interconnect = Interconnect::nvswitch;
  // In bytes/s per direction: from a device to the NVSwitch, or of one NVLink of the mesh.
  double device_bandwidth = 0;
  // Latency that the NICs and their software at both ends add to a message between nodes; it is assigned to
  // the NIC by which the message leaves.
  double nic_latency_s = 0;
  // Latency of one hop between two devices of the node. It is assigned to the link on which the hop starts
  // (outgoing NVLink; outgoing PCIe if devices communicate over PCIe); the links that end a hop have none.
  double device_latency_s = 0;
  struct MeshLink {
    int a = 0, b = 0, count = 1;
  };
  std::vector<MeshLink> mesh;  // nvlink_mesh: pairs and their number of NVLinks
  // Orders of the devices for rings inside a node, as NCCL finds them; empty: 0, 1, 2, ... On a mesh every
  // order is also used backwards.
  std::vector<std::vector<int>> rings;
  // In bytes/s per direction between device and NIC; 0: routes do not include PCIe. The processor has one
  // root port per NIC, which are modeled as a single link.
  double pcie_bandwidth = 0;
  // Share of pcie_bandwidth that NCCL's copies between devices reach: it counts on 12 GB/s of
  // PCIe 3.0's 15.75 (NVIDIA/nccl v2.30.7, src/graph/topo.h: PCI_BW).
  double pcie_efficiency = kPcieEfficiency;
  static constexpr double kPcieEfficiency = 12.0 / 15.75;
  // PCIe switches between the devices and the processor, innermost level first. Each connects `devices`
  // devices, counted from the first, and has an uplink to the level above, or from the last level to the
  // processor. NICs are attached to the innermost switches if there is one for each, else to the processor.
  struct PcieSwitches {
    int devices = 2;
    double bandwidth = 0;  // bytes/s per direction of an uplink
  };
  std::vector<PcieSwitches> pcie_switches;
  // Processors, or NUMA domains. Devices and NICs are divided evenly among them, in order; PCIe traffic
  // between two of them leaves the one and enters the other through links of `inter_socket_bandwidth` bytes/s
  // per direction. Copies between a device and host memory stay at its own socket.
  int sockets = 1;
  double inter_socket_bandwidth = 0;
  int socket_of_device(int local) const;
  int socket_of_nic(int nic) const;
  int nics = 1;
  double nic_bandwidth = 0;  // bytes/s per direction
  // Share of a NIC's bandwidth that NCCL's payload reaches: it counts on 12 GB/s for 100 Gb/s (NVIDIA/nccl
  // v2.30.7, src/graph/topo.h).
  double nic_efficiency = kNicEfficiency;
  static constexpr double kNicEfficiency = 0.96;
  // Whether 128 bytes arrive in the order in which they were written, which NCCL's LL and LL128 rely on. If
  // not, only Simple crosses between nodes.
  bool nic_ordered = true;
  int cpu_cores = 1;
  // In bytes/s, of all the node's processors together; 0: that of cpu-core for each core.
  double cpu_memory_bandwidth = 0;
  // Host memory and NVMe, for offloading. 0: unknown; host_links_bandwidth 0: no shared link.
  double cpu_memory_bytes = 0;
  double host_link_bandwidth = 0;   // bytes/s per direction of copies by a single device
  double host_links_bandwidth = 0;  // bytes/s per direction of copies by all devices of the node together
  double nvme_read_bandwidth = 0, nvme_write_bandwidth = 0;  // bytes/s of all drives of the node
  NodePower power;
  // Numbers for the complete machine, if a scenario uses fewer (devices_per_node); 0: `devices`, `nics`.
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
  // For leaf_spine, and for rail (nodes per group); derived from radix and oversubscription if not given.
  int nodes_per_leaf = 0;
  int spines = 0;
  // Bandwidth of the NICs that share an uplink of a leaf (or edge) over the bandwidth of the uplink. In
  // ClusterParts this is the requested ratio; in a finished cluster, the ratio that complete cables give.
  double oversubscription = 1, asked_oversubscription = 1;
  // In bytes/s per direction of one cable; `spines` is derived from it; 0: that of the NICs.
  double link_bandwidth = 0;
  std::int64_t spine_fold = 0;  // see topologies/uplinks.hpp; 0 if `spines` was given
  int radix = 0;                // fat_tree: ports per switch, even
  std::vector<int> dims;        // torus: places along each dimension; places without a node only relay
  int groups = 0;               // dragonfly; 0: as many as needed for the nodes
  int routers_per_group = 0, nodes_per_router = 0;  // dragonfly
  // For dragonfly: in bytes/s per direction between two groups; 0: same as link_bandwidth.
  double global_bandwidth = 0;
  double latency_s = 0;  // of one hop: NIC to switch, switch to switch, or (ring, torus) node to node
  enum class Routing { d_mod_k, ecmp_hash } routing = Routing::d_mod_k;
  bool sharp = false;  // its switches sum what nodes send (NVIDIA SHARP), which NCCL can use
  PortPower port_power;
};

// Nodes whose devices are of another kind, up to the next group or the last node.
struct NodeGroup {
  int first_node = 0;
  Device device;
};

struct SlowLink {
  std::string name;
  double factor = 1;
};
struct SlowDevice {
  int device = 0;
  double factor = 1;
};
// A device or link that is slower (or faster) than others of its kind.
struct SlowPart {
  std::string name;           // e.g. "node2.gpu1", "leaf3-spine1"
  double factor = 1;          // factor on its speed or bandwidth
  Endpoint device = -1;       // -1: a link
  std::vector<LinkId> links;  // its directions
};

inline constexpr std::array<std::string_view, 8> kFabricNames = {
    "switch", "leaf-spine", "links", "fat-tree", "rail", "ring", "torus", "dragonfly"};

// The location of a link: inside a node (NVLink or PCIe), at a network card, in the fabric, or of the storage
// (drives, and a network of their own); and whether it belongs to a server node.
struct LinkPlace {
  enum class Kind { inside_node, network_card, fabric, storage } kind = Kind::fabric;
  bool at_server = false;
};
inline bool crosses_network(const LinkPlace& place) {
  return place.kind == LinkPlace::Kind::network_card || place.kind == LinkPlace::Kind::fabric;
}

class Cluster {
public:
  std::string name;     // e.g. "dgx-a100"
  std::string changes;  // keys in which a scenario differs from the preset or file: ", but for nic_gbps"
  std::string title;    // e.g. "128 x dgx-a100 (1,024 GPUs)"
  std::vector<std::string> sources;
  Basis network_basis = Basis::published;
  std::vector<SlowPart> slow_parts;  // in the order of the scenario, devices first

  virtual ~Cluster() = default;
  const Node& node() const { return node_; }
  const Fabric& fabric() const { return fabric_; }
  int nodes() const { return nodes_; }
  // Nodes with devices of another kind than node().device, the last ones of the cluster; all else is the
  // same.
  const std::vector<NodeGroup>& groups() const { return groups_; }
  int group_of_node(int node) const;  // -1: none
  const Device& device_of_node(int node) const;
  int server_nodes() const { return server_nodes_; }
  // The storages that nodes read from and write to, and one of them (without any: of kind none).
  const std::vector<Storage>& storages() const { return storages_; }
  const Storage& storage(int which = 0) const;
  int devices() const { return nodes_ * node_.devices; }
  // Server nodes are numbered after the device nodes, and storage servers after those. Storage with a network
  // of its own is at node -1.
  int node_of(Endpoint e) const;
  // Returns the number of the device inside its node; 0 for a processor.
  int local_of(Endpoint e) const;
  Endpoint processor_of_node(int node) const { return devices() + node; }
  Endpoint server_processor(int server_node) const { return devices() + nodes_ + server_node; }
  // Endpoints of a storage: one for each node (local), one for each server, or a single one.
  int storage_endpoints(int which = 0) const;
  Endpoint storage_endpoint(int number, int which = 0) const;
  bool is_storage(Endpoint e) const { return e >= devices() + nodes_ + server_nodes_; }
  // Returns which storage an endpoint belongs to, and its number there.
  struct StoragePlace {
    int which = 0, number = 0;
  };
  StoragePlace storage_place(Endpoint e) const;
  int endpoints() const { return storage_endpoint(0, static_cast<int>(storages_.size())); }
  std::string endpoint_name(Endpoint e) const;  // e.g. "node3.gpu2", "node3.cpu", "server0.cpu"
  double device_factor(Endpoint e) const;  // 1, or the factor given by `slow`; times the factors of faster()

  // Number of switch ports with cables: one per NIC, and two per cable between switches. A single node needs
  // none.
  virtual std::int64_t switch_ports() const = 0;
  virtual int links() const = 0;
  virtual double bandwidth(LinkId l) const = 0;  // bytes/s, including `slow`
  virtual double latency_s(LinkId l) const = 0;
  virtual LinkPlace link_place(LinkId l) const = 0;
  bool inside_node(LinkId l) const { return link_place(l).kind == LinkPlace::Kind::inside_node; }
  // Names a direction of a cable: "node3.nic0.out", "leaf3-spine1" and "spine1-leaf3",
  // "node0.gpu1.nvlink.in".
  virtual std::string link_name(LinkId l) const = 0;
  // Finds links by name: both directions for the name of a cable ("node3.nic0", "leaf3-spine1" in either
  // order), one for the name of a direction with .in or .out; empty if there is none.
  virtual std::vector<LinkId> find_links(const std::string& name) const = 0;
  // Appends the links from `from` to `to`, in order; appends none if both are the same endpoint. Between
  // nodes the transfer uses NIC number `rail` of both nodes; rail < 0: each end's own NIC (the one nearest to
  // its device). Throws std::out_of_range if the node has no such NIC. The latency of a route is the sum of
  // its links' latencies. A device and its node's processor are connected by PCIe (through the uplinks of the
  // PCIe switches between them if the node has any, else through the processor's own link); without PCIe
  // there is no link between them. Routes from and to storage end in the memory of the other end's node;
  // those to the drives of another node do not exist (std::out_of_range).
  virtual void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const = 0;
  // Returns the size of the blocks of consecutive nodes, counted from node 0, that can change places with one
  // another: every route, bandwidth and latency moves along. 0: none are known to have this property, as with
  // a slow part, or a fabric whose routes depend on more than the place of a node inside its block.
  virtual int nodes_per_equal_block() const = 0;
  // Returns a node of the block that the link moves along with. Only for clusters that have such blocks.
  virtual int node_beside(LinkId l) const = 0;
  // Returns the NIC nearest to the device with this number inside the node.
  int nic_of(int local) const;
  // Returns the device nearest to this NIC, which forwards other devices' transfers if there is an NVSwitch
  // (PXN).
  int device_at_nic(int nic) const;

protected:
  Node node_;
  Fabric fabric_;
  int nodes_ = 1;
  int server_nodes_ = 0;
  std::vector<NodeGroup> groups_;
  std::vector<Storage> storages_;
  std::map<int, double> device_factors_;
  // Factors on all devices or all processors (topologies/faster.hpp).
  double device_speed_ = 1, processor_speed_ = 1;
};

// Reads and finishes the [cluster] section of a scenario: a preset or file with overrides, nodes, slow
// devices and links.
std::shared_ptr<const Cluster> read_cluster(Section& section, const std::string& base_folder,
                                            const std::vector<Storage>& storages = {});
// Clusters are presets in topologies/presets/NAME.toml; dgx-a100.toml explains the keys.
std::vector<std::string> cluster_names();

// The parts of which make_cluster() builds a cluster; used by the readers and by tests.
struct ClusterParts {
  std::string name, changes;
  Node node;
  Fabric fabric;
  int nodes = 1;
  int server_nodes = 0;
  struct Group {
    int nodes = 1;
    Device device;
  };
  std::vector<Group> groups;  // further nodes, behind `nodes`
  std::vector<Storage> storages;
  // For fabric kind `links`: ends are "nodeI", "serverI" or switch names. The cables carry the latency;
  // routes include the NICs' links (with latency 0) only if nic_bandwidth is given. All nodes must be
  // connected.
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
// Throws InputError if the parts do not form a valid cluster, of at most 2,097,152 devices and 4,194,304
// endpoints.
std::shared_ptr<const Cluster> make_cluster(const ClusterParts& parts);

// The rings of a collective over `members`: `orders` has one order of the members (endpoints) per channel,
// rotated inside each node so that successive channels enter through different NICs; rails[c] is the NIC that
// channel c uses between nodes (-1: each end's own).
struct Rings {
  std::vector<std::vector<Endpoint>> orders;
  std::vector<int> rails;
  // By channel: hops {from, through, to} of a mesh that use NVLinks through another member, as NCCL does if
  // two members have no NVLink between them.
  std::vector<std::vector<std::array<Endpoint, 3>>> relays;
};
// Returns the rings. `channels` = 0: as many as the members of a node have NICs; on a single node 1, or on a
// mesh as many rings as the members' NVLinks carry, counting both directions (if no ring closes, hops can go
// through members that relay). Never makes more channels than make a difference: one per NIC on several
// nodes, one per NIC and ring on several nodes with a mesh, and on a single node as many as for 0.
Rings ring_orders(const Cluster& cluster, const std::vector<Endpoint>& members, int channels);

}  // namespace rehearse
