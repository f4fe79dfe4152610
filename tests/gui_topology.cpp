// Tests the graph of a cluster: its parts, what is folded together, and the layout.
#include <fmt/format.h>

#include <set>

#include "gui/models/topology/topology_graph.hpp"
#include "gui/models/topology/topology_layout.hpp"
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

struct Case {
  std::string name;
  std::string text;
  int places = 0, cables = 0, layers = 0;
};

const char* const kNode =
    "[cluster.node]\ndevice = \"a100-80\"\ndevices = 2\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 300\n"
    "nics = 2\nnic_gbps = 200\n";

std::string with(const std::string& head, const std::string& fabric, const std::string& rest = "") {
  return "[cluster]\n" + head + "\n" + kNode + "[cluster.fabric]\n" + fabric + "\nlatency_us = 1\n" + rest;
}

const std::vector<Case>& cases() {
  // Nodes have two NICs with a cable each.
  static const std::vector<Case> all = {
      {"switch", with("nodes = 8", "kind = \"switch\""), 8 + 1, 8 * 2, 2},
      {"leaf-spine", with("nodes = 8", "kind = \"leaf-spine\"\nnodes_per_leaf = 2\nspines = 3"), 8 + 4 + 3,
       8 * 2 + 4 * 3, 3},
      // Two groups of two rails.
      {"rail", with("nodes = 8", "kind = \"rail\"\nnodes_per_leaf = 4\nspines = 2"), 8 + 2 * 2 + 2,
       8 * 2 + 4 * 2, 3},
      // 16 ports need (4/2)^2 = 4 per pod of four ports: 4 pods of 2 edge and 2 aggregation switches, and 4
      // core switches.
      {"fat-tree", with("nodes = 8", "kind = \"fat-tree\"\nradix = 4"), 8 + 4 * (2 + 2) + 4,
       8 * 2 + 4 * 4 + 4 * 4, 4},
      {"ring", with("nodes = 8", "kind = \"ring\""), 8, 8, 1},
      {"torus", with("nodes = 12", "kind = \"torus\"\ndims = [4, 3]"), 12, 2 * 12, 1},
      {"cube", with("nodes = 27", "kind = \"torus\"\ndims = [3, 3, 3]"), 27, 3 * 27, 1},
      // Three groups of two routers with two nodes each: a cable inside each group and one between any two
      // groups.
      {"dragonfly", with("nodes = 12", "kind = \"dragonfly\"\nrouters_per_group = 2\nnodes_per_router = 2"),
       12 + 6, 12 * 2 + 3 * 1 + 3, 2},
      {"links",
       with("nodes = 3", "kind = \"links\"",
            "[[cluster.link]]\na = \"node0\"\nb = \"s0\"\ngbps = 100\nlatency_us = 1\n"
            "[[cluster.link]]\na = \"node1\"\nb = \"s0\"\ngbps = 100\nlatency_us = 1\n"
            "[[cluster.link]]\na = \"s0\"\nb = \"s1\"\ngbps = 50\nlatency_us = 1\n"
            "[[cluster.link]]\na = \"s1\"\nb = \"node2\"\ngbps = 100\nlatency_us = 1\n"),
       3 + 2, 4, 2},
  };
  return all;
}

std::shared_ptr<const Cluster> leaves(int nodes, int nodes_per_leaf, int spines) {
  return make_cluster(leaf_spine(nodes, 2, 1, nodes_per_leaf, spines, 1));
}

}  // namespace

TEST_CASE("A cluster's graph has its nodes, switches and cables") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const auto cluster = cluster_of(c.text);
    const Topology topology(cluster);
    CHECK(static_cast<int>(topology.places().size()) == c.places);
    CHECK(static_cast<int>(topology.cables().size()) == c.cables);
    CHECK(topology.layers() == c.layers);
    for (std::size_t i = 0; i < topology.cables().size(); ++i) {
      const Cable& cable = topology.cables()[i];
      CHECK(topology.places()[cable.a].layer <= topology.places()[cable.b].layer);
      CHECK(topology.cable_of(cable.there) == static_cast<int>(i));
      CHECK(topology.cable_of(cable.back) == static_cast<int>(i));
      CHECK(other_way(*cluster, cable.there) == cable.back);
    }
  }
}

TEST_CASE("The cables of a route follow one another from node to node") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const auto cluster = cluster_of(c.text);
    const Topology topology(cluster);
    for (int from = 0; from < cluster->devices(); ++from)
      for (int to = 0; to < cluster->devices(); ++to) {
        int at = cluster->node_of(from);
        if (at == cluster->node_of(to)) continue;
        for (const LinkId link : route_of(*cluster, from, to)) {
          const int number = topology.cable_of(link);
          if (number < 0) {
            CHECK(topology.inside(link) == at);
            continue;
          }
          const Cable& cable = topology.cables()[number];
          const bool there = link == cable.there;
          REQUIRE((there ? cable.a : cable.b) == at);
          at = there ? cable.b : cable.a;
        }
        REQUIRE(at == cluster->node_of(to));
      }
  }
}

TEST_CASE("Small clusters are drawn node by node, large ones folded until they are opened") {
  {
    const Topology topology(leaves(64, 8, 4));
    CHECK(shown_graph(topology, {}).vertices.size() == 64 + 8 + 4);
  }
  {
    // 128 nodes below 8 leaves: the 16 nodes of each leaf are shown as one.
    const Topology topology(leaves(128, 16, 4));
    const ShownGraph closed = shown_graph(topology, {});
    CHECK(closed.vertices.size() == 8 + 8 + 4);
    CHECK(closed.edges.size() == 8 + 8 * 4);
    CHECK(closed.vertices[0].title == "16 nodes");
    CHECK(closed.vertices[1].detail == "node16-31");
    const ShownGraph opened = shown_graph(topology, topology.groups_around(20));
    CHECK(opened.vertices.size() == 8 + 8 + 4 + 15);
    CHECK(opened.vertices[opened.vertex_of[20]].title == "node20");
  }
  {
    // 64 leaves of two nodes are too many to show side by side, and so are the 20 spines above them.
    const Topology topology(leaves(128, 2, 20));
    const ShownGraph closed = shown_graph(topology, {});
    CHECK(closed.vertices.size() == 16 + 16 + 1);
    CHECK(closed.vertices.back().title == "20 spines");
    CHECK(closed.vertices.back().detail == "spine0-19");
    std::size_t cables = 0;
    for (const ShownGraph::Edge& edge : closed.edges) cables += edge.cables.size();
    CHECK(cables == 128 + 64 * 20);
    const ShownGraph opened = shown_graph(topology, topology.groups_around(5));
    CHECK(opened.vertices.size() == 15 + 15 + 1 + 4 + 8);
  }
}

TEST_CASE("All places of any fabric can be reached by opening") {
  for (const auto& cluster :
       {leaves(512, 4, 32), cluster_of(with("nodes = 500", "kind = \"torus\"\ndims = [10, 10, 5]")),
        cluster_of(with("nodes = 200", "kind = \"ring\"")),
        cluster_of(with("nodes = 300", "kind = \"switch\"")),
        cluster_of(with("nodes = 256", "kind = \"fat-tree\"\nradix = 16")),
        cluster_of(
            with("nodes = 544", "kind = \"dragonfly\"\nrouters_per_group = 8\nnodes_per_router = 4"))}) {
    const Topology topology(cluster);
    CAPTURE(cluster_line(*cluster));
    CHECK(shown_graph(topology, {}).vertices.size() <= 100);
    std::set<int> all;
    for (int p = 0; p < static_cast<int>(topology.places().size()); ++p) {
      const std::set<int> around = topology.groups_around(p);
      all.insert(around.begin(), around.end());
      const ShownGraph shown = shown_graph(topology, around);
      REQUIRE(shown.vertices[shown.vertex_of[p]].members == 1);
    }
    CHECK(shown_graph(topology, all).vertices.size() == topology.places().size());
  }
}

TEST_CASE("No two vertices stand in one spot, tiers stand above each other") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Topology topology(cluster_of(c.text));
    const ShownGraph graph = shown_graph(topology, {});
    const GraphLayout layout = layout_of(topology, graph);
    REQUIRE(layout.at.size() == graph.vertices.size());
    for (std::size_t a = 0; a < layout.at.size(); ++a) {
      CHECK(layout.at[a].x >= -1e-9);
      CHECK(layout.at[a].y >= -1e-9);
      CHECK(layout.at[a].x <= layout.width + 1e-9);
      CHECK(layout.at[a].y <= layout.height + 1e-9);
      for (std::size_t b = 0; b < a; ++b)
        CHECK(std::hypot(layout.at[a].x - layout.at[b].x, layout.at[a].y - layout.at[b].y) > 0.05);
    }
    if (!layout.tiers) continue;
    for (std::size_t v = 0; v < layout.at.size(); ++v)
      CHECK(layout.at[v].y == layout.height - graph.vertices[v].layer);
  }
}

TEST_CASE("The inside of a node has a wire for each of its links") {
  struct Inside {
    std::string name;
    ClusterParts parts;
    std::size_t wires = 0;  // wires that are links
  };
  ClusterParts pcie = gpu_nodes(2, 8, 4);
  pcie.node.interconnect = Node::Interconnect::pcie;
  pcie.node.pcie_switches = {{2, 32e9}, {4, 32e9}};
  ClusterParts sockets = gpu_nodes(2, 8, 4), both = pcie;
  sockets.node.interconnect = Node::Interconnect::pcie;
  for (ClusterParts* parts : {&sockets, &both}) {
    parts->node.sockets = 2;
    parts->node.inter_socket_bandwidth = 62e9;
  }
  const std::vector<Inside> all = {
      {"nvswitch", gpu_nodes(2, 8, 8), 8 + 8 + 1 + 8},  // NVLink, PCIe, the processor's, NICs
      {"mesh", mesh_nodes(2), 4 + 4 + 1 + 2},
      {"pcie switches", pcie, 8 + 4 + 2 + 4},
      {"two sockets", sockets, 8 + 1 + 2 + 4},  // PCIe, the processors', the sockets', NICs
      {"two sockets with switches", both, 8 + 4 + 2 + 1 + 2 + 4},
  };
  for (const Inside& c : all) {
    CAPTURE(c.name);
    const auto cluster = make_cluster(c.parts);
    const NodeInside inside = inside_of(*cluster, 1);
    std::set<LinkId> links;
    for (const NodeInside::Wire& wire : inside.wires) {
      REQUIRE(wire.a != wire.b);
      if (wire.there < 0) continue;
      CHECK(other_way(*cluster, wire.there) == wire.back);
      links.insert({wire.there, wire.back});
    }
    CHECK(links.size() == 2 * c.wires);
    // Includes every link on a route within the node.
    for (int a = 0; a < cluster->devices(); ++a) {
      if (cluster->node_of(a) != 1) continue;
      for (int b = 0; b < cluster->devices(); ++b)
        for (const LinkId link : route_of(*cluster, a, b))
          if (cluster->link_name(link).starts_with("node1.")) CHECK(links.count(link) == 1);
    }
    const GraphLayout layout = layout_of(inside);
    CHECK(layout.at.size() == inside.parts.size());
  }
}

TEST_CASE("Devices, switches and network cards hang at their socket, and the sockets at what joins them") {
  for (const int sockets : {2, 4}) {
    CAPTURE(sockets);
    ClusterParts parts = gpu_nodes(2, 8, 4);
    parts.node.interconnect = Node::Interconnect::pcie;
    parts.node.sockets = sockets;
    parts.node.inter_socket_bandwidth = 62e9;
    const auto cluster = make_cluster(parts);
    const NodeInside inside = inside_of(*cluster, 0);
    std::set<std::pair<std::string, std::string>> wires;
    for (const NodeInside::Wire& wire : inside.wires)
      wires.emplace(inside.parts[wire.a].name, inside.parts[wire.b].name);
    for (int d = 0; d < 8; ++d)
      CHECK(wires.count({fmt::format("gpu{}", d), fmt::format("socket{}", d * sockets / 8)}) == 1);
    for (int n = 0; n < 4; ++n)
      CHECK(wires.count({fmt::format("socket{}", n * sockets / 4), fmt::format("nic{}", n)}) == 1);
    for (int s = 0; s < sockets; ++s) {
      CHECK(wires.count({fmt::format("socket{}", s), "inter-socket"}) == 1);
      CHECK(wires.count({"cpu", fmt::format("socket{}", s)}) == 1);
    }
  }
}
