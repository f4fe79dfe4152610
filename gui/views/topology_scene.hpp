// Where everything of a topology is painted in a window of some size: boxes, lines, and what a point hits.
#pragma once

#include <QFontMetricsF>
#include <QLineF>
#include <QPainterPath>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <memory>
#include <vector>

#include "gui/models/topology_graph.hpp"
#include "gui/models/topology_layout.hpp"

namespace rehearse::gui {

// Of the picture: how far it is zoomed and moved from where it fits.
struct SceneView {
  double zoom = 1;
  QPointF moved;
};

struct SceneVertex {
  QRectF box;
  QString title, detail;  // whole names
  QString shown;          // as much of them as fits; empty
  QString second;         // a line below; empty
  QString noun;           // what its layer consists of, where names are numbers only; of the first
  // The name or number painted beside a node that has no room for it inside; empty: none.
  QString aside;
  QRectF aside_box;
  bool is_switch = false;
  bool idle = false;         // only relays
  int vertex = -1;           // of the shown graph
  int node = -1, part = -1;  // of an opened node
  int layer = 0;             // of that: parts of one are told alike
};

struct SceneEdge {
  QPointF a, b;
  double bend = 0;                        // pixels by which its middle leaves the straight line
  std::vector<LinkId> there, back;        // from a to b, from b to a; both empty: no links, only a line
  double capacity = 0;                    // bytes/s of one of them
  double width = 1;                       // pixels of each direction
  int node = -1;                          // of an opened node
  QPointF at(double share) const;         // a point on it
  QPainterPath path(double aside) const;  // shifted to its right
  double distance(QPointF point) const;
};

struct OpenNode {
  int node = 0;
  NodeInside inside;
};

struct TopologyScene {
  QRectF graph;                // the part of the window that the graph has
  std::vector<QRectF> frames;  // of opened nodes, in their order
  std::vector<SceneVertex> vertices;
  std::vector<SceneEdge> edges;
  double least_capacity = 0, most_capacity = 0;

  int vertex_at(QPointF point) const;  // -1
  int edge_at(QPointF point) const;    // -1
  int vertex_of(int shown) const;      // the scene's number of a vertex of the shown graph; -1
};

// Where vertices stand while the picture is neither zoomed nor moved.
QRectF room_of(const QRectF& graph);

// In `area`; opened nodes stand at its right.
TopologyScene make_scene(const Topology& topology, const ShownGraph& shown, const GraphLayout& layout,
                         const std::vector<OpenNode>& open, QRectF area, const SceneView& view,
                         const QFontMetricsF& metrics);

}  // namespace rehearse::gui
