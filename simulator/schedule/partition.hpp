// The coarsest equitable partition: which nodes of a hypergraph cannot be told apart by what surrounds them.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Nodes are whatever has a colour (ranks, links); an edge (a transfer) touches nodes, each with a label that
// tells the ways of touching apart (sender, receiver, member, "crossed with weight 3").
struct Hypergraph {
  std::vector<std::uint64_t> node_colour, edge_colour;  // what tells them apart to begin with
  struct Touch {
    int node = 0;
    std::uint32_t label = 0;
  };
  std::vector<std::int64_t> first_touch = {0};  // of each edge, into `touches`; one more than there are edges
  std::vector<Touch> touches;

  void add_edge(std::uint64_t colour) {
    edge_colour.push_back(colour);
    first_touch.push_back(static_cast<std::int64_t>(touches.size()));
  }
  void touch(int node, std::uint32_t label) {  // by the edge added last
    touches.push_back({node, label});
    first_touch.back() = static_cast<std::int64_t>(touches.size());
  }
};

// Classes numbered from 0 in order of their first member.
struct Partition {
  std::vector<int> node_class, edge_class;
  int node_classes = 0, edge_classes = 0;
};

// Refines until every node of a class touches equally many edges of each class in each way, and every edge of
// a class equally many nodes of each class (colour refinement, also known as 1-dimensional Weisfeiler-Leman).
Partition coarsest_equitable_partition(const Hypergraph& graph);

// Every node and every edge for itself.
Partition discrete_partition(const Hypergraph& graph);

std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b);

}  // namespace rehearse
