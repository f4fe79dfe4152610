// Computes the coarsest equitable partition: groups nodes of a hypergraph that their surroundings do not
// distinguish.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Nodes are any objects with a colour (ranks, links). An edge (a transfer) touches nodes; each touch has a
// label that distinguishes how (sender, receiver, member, "crossed with weight 3"). A graph with a symmetry
// can have one node for each orbit (nodes that the symmetry moves onto one another) and one edge for each
// orbit of edges, provided that each node of the graph is touched by the edges that touch the orbit's other
// nodes alike.
struct Hypergraph {
  std::vector<std::uint64_t> node_colour, edge_colour;  // initial colours
  struct Touch {
    int node = 0;
    std::uint32_t label = 0;
    std::int32_t times = 1;  // how many equal nodes, of which this one represents all, the edge touches alike
  };
  std::vector<std::int64_t> first_touch = {0};  // index into `touches` by edge, and one past the last edge
  std::vector<Touch> touches;

  void add_edge(std::uint64_t colour) {
    edge_colour.push_back(colour);
    first_touch.push_back(static_cast<std::int64_t>(touches.size()));
  }
  // By the edge that was added last.
  void touch(int node, std::uint32_t label, std::int32_t times = 1) {
    touches.push_back({node, label, times});
    first_touch.back() = static_cast<std::int64_t>(touches.size());
  }
};

// Classes numbered from 0 in the order of their first members.
struct Partition {
  std::vector<int> node_class, edge_class;
  int node_classes = 0, edge_classes = 0;
};

// Refines until every node of a class touches equally many edges of each class with each label, and every
// edge of a class touches equally many nodes of each class (colour refinement, also known as 1-dimensional
// Weisfeiler-Leman).
Partition coarsest_equitable_partition(const Hypergraph& graph);

// Puts every node and every edge into a separate class.
Partition discrete_partition(const Hypergraph& graph);

std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b);

}  // namespace rehearse
