// Represents a cluster as a graph to draw: nodes, switches and cables. Many equal ones are drawn as one.
#pragma once

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse::gui {

// A node or a switch.
struct Place {
  enum class Kind { node, server, fabric_switch, idle } kind = Kind::node;
  std::string name;  // e.g. "node3", "leaf0", "group0.rail3"
  int layer = 0;     // 0 for nodes; for switches the distance from the nodes
  int unit = -1;     // what is drawn together: a leaf, pod or group with its nodes; -1: above all units
  int group = -1;    // innermost group that contains it; -1: none
};

// Both directions of a link between two places.
struct Cable {
  int a = 0, b = 0;            // indices of places; a is in the lower layer if the layers differ
  LinkId there = 0, back = 0;  // from a to b, from b to a
};

// Places that are drawn as one per layer until the group is opened.
struct Group {
  int parent = -1;
  int unit = -1;  // first unit in it
};

class Topology {
public:
  explicit Topology(std::shared_ptr<const Cluster> cluster);  // slow; do not call on the window's thread

  const Cluster& cluster() const { return *cluster_; }
  std::shared_ptr<const Cluster> shared_cluster() const { return cluster_; }
  const std::vector<Place>& places() const { return places_; }  // nodes, servers, then switches
  const std::vector<Cable>& cables() const { return cables_; }
  const std::vector<Group>& groups() const { return groups_; }
  int layers() const { return layers_; }
  int hosts() const { return hosts_; }  // nodes, servers and storage servers, which are the first places
  // The cable of a link; -1: the link is inside the node given by inside(), or nowhere in the picture, as
  // those of storage that is not on the fabric.
  int cable_of(LinkId link) const {
    return where_[link] >= 0 && where_[link] != kNowhere ? where_[link] : -1;
  }
  int inside(LinkId link) const { return where_[link] < 0 ? -1 - where_[link] : -1; }
  std::set<int> groups_around(int place) const;  // groups that must be open to show the place

private:
  void find_layers();
  void find_units();
  void find_groups();

  std::shared_ptr<const Cluster> cluster_;
  std::vector<Place> places_;
  std::vector<Cable> cables_;
  std::vector<Group> groups_;
  static constexpr int kNowhere = std::numeric_limits<int>::max();
  std::vector<int> where_;  // by link: a cable, -1 - node, or kNowhere
  int hosts_ = 0;
  int layers_ = 1;
};

// The graph to draw when some groups are open.
struct ShownGraph {
  struct Vertex {
    int place = 0;  // the first place it represents
    int last_place = 0;
    int group = -1;  // the closed group; -1: a single place
    int members = 1;
    int layer = 0, unit = -1;
    std::string title;   // e.g. "leaf3", "16 nodes"
    std::string detail;  // e.g. "node0-15"; can be empty
  };
  struct Edge {
    int a = 0, b = 0;
    std::vector<int> cables;
    std::vector<bool> turned;  // by cable: it runs from b to a
  };
  std::vector<Vertex> vertices;
  std::vector<Edge> edges;
  std::vector<int> vertex_of;  // by place
};
ShownGraph shown_graph(const Topology& topology, const std::set<int>& open);

// The parts of a node: devices, processor or sockets, PCIe, NVSwitch, network cards.
struct NodeInside {
  struct Part {
    // between_sockets: what carries the traffic from one socket to another
    enum class Kind { device, processor, socket, between_sockets, nvswitch, pcie, nic, network };
    Kind kind = Kind::device;
    std::string name;  // e.g. "gpu3"
    int layer = 0;     // counted from the bottom
  };
  struct Wire {
    int a = 0, b = 0;
    LinkId there = -1, back = -1;  // from a to b, from b to a; -1: no link models this wire
  };
  std::vector<Part> parts;
  std::vector<Wire> wires;
};
NodeInside inside_of(const Cluster& cluster, int node);  // servers are numbered after the device nodes

// Returns e.g. "dgx-a100 x 96, leaf-spine".
std::string cluster_line(const Cluster& cluster);

}  // namespace rehearse::gui
