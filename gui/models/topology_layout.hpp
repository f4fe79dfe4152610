// Where the vertices of a topology stand: tiers above each other, a circle, or a grid.
#pragma once

#include <vector>

#include "gui/models/topology_graph.hpp"

namespace rehearse::gui {

struct Spot {
  double x = 0, y = 0;
};

struct GraphLayout {
  std::vector<Spot> at;  // by vertex; within [0, width] x [0, height], y downwards
  double width = 1, height = 1;
  double most_stretch = 1;  // by how much one side may be scaled more than the other
  bool tiers = false;       // layer above layer; else edges run any way
};

// The same graph stands the same way every time.
//   switch, leaf-spine, rail, fat-tree and graphs of links with switches: in tiers, the nodes below
//   ring, dragonfly (routers inside, nodes outside) and graphs of nodes only: around a circle
//   torus: two dimensions as a grid, a third one slanting into it; far more nodes than fit: plane by plane
GraphLayout layout_of(const Topology& topology, const ShownGraph& graph);

// From below to above: parts of a layer beside each other.
GraphLayout layout_of(const NodeInside& inside);

}  // namespace rehearse::gui
