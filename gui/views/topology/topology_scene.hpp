// Computes where the parts of a topology are painted in a given area: boxes, lines, and what is at a point.
#pragma once

#include <QFontMetricsF>
#include <QLineF>
#include <QPainterPath>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <memory>
#include <vector>

#include "gui/models/topology/topology_graph.hpp"
#include "gui/models/topology/topology_layout.hpp"

namespace rehearse::gui {

// Zoom and displacement of the picture, relative to where it fits the window.
struct SceneView {
  double zoom = 1;
  QPointF moved;
};

struct SceneVertex {
  QRectF box;
  QString title, detail;  // full names
  QString shown;          // the part of the title that fits; may be empty
  QString second;         // second line of text; may be empty
  QString noun;           // on the first box of a layer whose names are only numbers: what they count
  // The name or number painted beside a box that has no room for it inside; empty for none.
  QString aside;
  QRectF aside_box;
  bool is_switch = false;
  bool idle = false;         // only relays traffic
  int vertex = -1;           // index in the shown graph; -1 inside an opened node
  int node = -1, part = -1;  // opened node and its part; -1 otherwise
  int layer = 0;             // of the opened node; names of a layer are uniform
};

struct SceneEdge {
  QPointF a, b;
  double bend = 0;                        // pixels between its middle and the straight line
  std::vector<LinkId> there, back;        // from a to b, from b to a; both empty for a line without links
  double capacity = 0;                    // bytes/s of one link
  double width = 1;                       // pixels per direction
  int node = -1;                          // opened node that contains it; -1 for none
  QPointF at(double share) const;         // the point at this share of its length
  QPainterPath path(double aside) const;  // shifted sideways by `aside` pixels
  double distance(QPointF point) const;
};

struct OpenNode {
  int node = 0;
  NodeInside inside;
};

struct TopologyScene {
  QRectF graph;                // the part of the window that shows the graph
  std::vector<QRectF> frames;  // of the opened nodes, in their order
  std::vector<SceneVertex> vertices;
  std::vector<SceneEdge> edges;
  double least_capacity = 0, most_capacity = 0;

  int vertex_at(QPointF point) const;  // -1 for none
  int edge_at(QPointF point) const;    // -1 for none
  int vertex_of(int shown) const;      // scene index of a vertex of the shown graph; -1 for none
};

// Returns the area for the vertices of a picture that is neither zoomed nor moved.
QRectF room_of(const QRectF& graph);

// Lays out the picture in `area`, with opened nodes on its right.
TopologyScene make_scene(const Topology& topology, const ShownGraph& shown, const GraphLayout& layout,
                         const std::vector<OpenNode>& open, QRectF area, const SceneView& view,
                         const QFontMetricsF& metrics);

}  // namespace rehearse::gui
