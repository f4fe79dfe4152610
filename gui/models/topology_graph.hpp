// A cluster as a graph to be drawn: nodes, switches and cables, equal ones as one where there are many.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse::gui {

// A node or a switch.
struct Place {
  enum class Kind { node, server, fabric_switch, idle } kind = Kind::node;
  std::string name;  // "node3", "leaf0", "group0.rail3"
  int layer = 0;     // nodes 0; switches by how far they are from the nodes
  int unit = -1;     // what stands together: a leaf, pod or group with its nodes; -1: above all of them
  int group = -1;    // the innermost that it belongs to; -1: none
};

// Both directions of a link between two places.
struct Cable {
  int a = 0, b = 0;            // numbers of places; a in the lower layer, if they differ
  LinkId there = 0, back = 0;  // from a to b, from b to a
};

// Places that are drawn as one in each layer until they are opened.
struct Group {
  int parent = -1;
  int unit = -1;  // the first
};

class Topology {
public:
  explicit Topology(std::shared_ptr<const Cluster> cluster);  // slow: not on the window's thread

  const Cluster& cluster() const { return *cluster_; }
  std::shared_ptr<const Cluster> shared_cluster() const { return cluster_; }
  const std::vector<Place>& places() const { return places_; }  // nodes, servers, then switches
  const std::vector<Cable>& cables() const { return cables_; }
  const std::vector<Group>& groups() const { return groups_; }
  int layers() const { return layers_; }
  // The cable of a link; -1: it is inside a node, whose number inside() gives.
  int cable_of(LinkId link) const { return where_[link] >= 0 ? where_[link] : -1; }
  int inside(LinkId link) const { return where_[link] < 0 ? -1 - where_[link] : -1; }
  std::set<int> groups_around(int place) const;  // that must be open for it to be seen

private:
  void find_layers();
  void find_units();
  void find_groups();

  std::shared_ptr<const Cluster> cluster_;
  std::vector<Place> places_;
  std::vector<Cable> cables_;
  std::vector<Group> groups_;
  std::vector<int> where_;  // by link: a cable, or -1 - node
  int layers_ = 1;
};

// What is drawn while some groups are open.
struct ShownGraph {
  struct Vertex {
    int place = 0;   // the first that it stands for
    int group = -1;  // closed; -1: it is one place
    int members = 1;
    int layer = 0, unit = -1;
    std::string title;   // "leaf3", "16 nodes"
    std::string detail;  // "node0-15"; empty
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

// What is in a node: devices, processor, PCIe, NVSwitch, network cards.
struct NodeInside {
  struct Part {
    enum class Kind { device, processor, nvswitch, pcie, nic, network } kind = Kind::device;
    std::string name;  // "gpu3"
    int layer = 0;     // from below
  };
  struct Wire {
    int a = 0, b = 0;
    LinkId there = -1, back = -1;  // from a to b, from b to a; -1: no link has this part's limits
  };
  std::vector<Part> parts;
  std::vector<Wire> wires;
};
NodeInside inside_of(const Cluster& cluster, int node);  // servers come after the device nodes

// "dgx-a100 x 96, leaf-spine"
std::string cluster_line(const Cluster& cluster);

}  // namespace rehearse::gui
