// Numbers a cluster's links so that names, capacities and routes are computed and never stored.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/cabling.hpp"
#include "topologies/cluster.hpp"
#include "topologies/graph.hpp"

namespace rehearse {

// Links are numbered node by node: NVLinks, PCIe of the devices, the processor and the switches, NICs; then
// the server nodes: PCIe, NICs; then the fabric. The two directions of a cable have consecutive numbers.
class Network final : public Cluster {
public:
  explicit Network(const ClusterParts& parts);  // the parts must have been checked

  std::int64_t switch_ports() const override;
  int links() const override { return links_; }
  double bandwidth(LinkId l) const override;
  double latency_s(LinkId l) const override;
  LinkPlace link_place(LinkId l) const override;
  std::string link_name(LinkId l) const override;
  std::vector<LinkId> find_links(const std::string& wanted) const override;
  void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const override;
  int nodes_per_equal_block() const override;
  int node_beside(LinkId l) const override;

private:
  enum class Kind { nvlink, mesh, pcie, nic, fabric, graph };
  struct Link {
    Kind kind = Kind::nic;
    int node = 0;  // servers are numbered after the device nodes
    // Device (PCIe: also the processor, then the switches, level by level, then the sockets), pair of the
    // mesh, NIC, or cable of the fabric.
    int number = 0;
    bool back = false;  // towards the device or the node; from b to a
  };
  Link decode(LinkId l) const;
  std::string node_name(int node) const { return node_name_of(node, nodes_); }
  LinkId node_base(int node) const;
  LinkId nvlink(int node, int device, bool back) const { return node_base(node) + 2 * device + back; }
  LinkId pcie(int node, int port, bool back) const;
  LinkId nic(int node, int number, bool back) const;
  int mesh_pair(int a, int b) const { return mesh_pair_[static_cast<std::size_t>(a) * node_.devices + b]; }
  int port_of(Endpoint e) const { return e < devices() ? local_of(e) : node_.devices; }

  bool is_socket(int port) const { return port >= first_socket_; }
  const Node::PcieSwitches& level_of(int port) const;  // level of a switch's uplink
  int place_of(Endpoint e) const { return e < devices() ? local_of(e) : kRoot; }
  // Uplink of the switch of this level that the device is attached to.
  LinkId uplink(int node, std::size_t level, int device, bool back) const;
  // Places in the node's PCIe: a device's number, kRoot for the processors' memory, or kRoot - 1 - s for what
  // hangs at socket s. route_switches() appends the links between two of them.
  static constexpr int kRoot = -1;
  int socket_of(int place) const;  // -1: any
  void route_switches(int node, int from, int to, std::vector<LinkId>& links) const;
  int place_of_nic(int nic_number) const;
  void route_inside(Endpoint from, Endpoint to, std::vector<LinkId>& links) const;
  void route_to_nic(Endpoint from, int nic_number, std::vector<LinkId>& links) const;
  void route_from_nic(Endpoint to, int nic_number, std::vector<LinkId>& links) const;
  // Returns both directions, or one if `direction` is 'o' (out) or 'i' (in). The direction given by the name
  // comes first.
  std::vector<LinkId> cable(LinkId first, bool back, char direction) const;

  int nvlinks_ = 0;  // links per node, by kind
  int pcie_ = 0;     // of the devices' and the processor's ports and the switches' uplinks
  int nics_ = 0;
  int server_pcie_ = 0;
  int first_socket_ = 0;  // its number among the PCIe ports
  int node_links_ = 0, server_links_ = 0;
  int total_nodes_ = 0;
  LinkId servers_base_ = 0, fabric_base_ = 0;
  int links_ = 0;
  std::vector<int> mesh_pair_;
  std::vector<ClusterParts::GraphLink> cables_;
  std::unique_ptr<FabricGraph> graph_;
  std::unique_ptr<Cabling> wiring_;
  std::vector<std::pair<LinkId, double>> slow_;  // sorted
};

}  // namespace rehearse
