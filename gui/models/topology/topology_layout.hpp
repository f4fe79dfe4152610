// Arranges the vertices of a topology in tiers, around a circle or on a grid.
#pragma once

#include <vector>

#include "gui/models/topology/topology_graph.hpp"

namespace rehearse::gui {

struct Spot {
  double x = 0, y = 0;
};

struct GraphLayout {
  std::vector<Spot> at;  // by vertex; within [0, width] x [0, height], y downwards
  double width = 1, height = 1;
  double most_stretch = 1;  // limit on how much more one axis can be scaled than the other
  bool tiers = false;       // layers above each other; otherwise edges run in any direction
};

// Computes a deterministic layout:
//   switch, leaf-spine, rail, fat-tree and graphs of links with switches: in tiers, the nodes at the bottom
//   ring, dragonfly (routers inside, nodes outside) and graphs of nodes only: around a circle
//   torus: two dimensions as a grid, a third one as a slant; if there are too many nodes, plane by plane
GraphLayout layout_of(const Topology& topology, const ShownGraph& graph);

// Layers from bottom to top, the parts of a layer side by side.
GraphLayout layout_of(const NodeInside& inside);

}  // namespace rehearse::gui
