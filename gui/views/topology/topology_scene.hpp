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
#include "gui/views/topology/topology_labels.hpp"

namespace rehearse::gui {

// Zoom and displacement of the picture, relative to where it fits the window.
struct SceneView {
  double zoom = 1;
  QPointF moved;
};

// Pixels by which a second sheet behind a group is displaced to the right and upwards.
inline constexpr double kSheet = 2.5;

struct SceneVertex {
  QRectF box;
  QString title, detail;  // full names
  QString shown;          // the part of the title that fits; may be empty
  QString second;         // second line of text; may be empty
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
  QRectF graph;                  // the part of the window that shows the graph
  QRectF room;                   // the part of it in which the centres of boxes lie without zoom
  std::vector<QRectF> frames;    // of the opened nodes, in their order
  std::vector<int> frame_nodes;  // the opened nodes
  std::vector<SceneVertex> vertices;
  std::vector<SceneEdge> edges;
  std::vector<SceneLabel> labels;
  double least_capacity = 0, most_capacity = 0;

  int vertex_at(QPointF point) const;  // -1 for none
  int edge_at(QPointF point) const;    // -1 for none
  int vertex_of(int shown) const;      // scene index of a vertex of the shown graph; -1 for none
};

// Lays out the picture in `area`, with opened nodes on its right.
TopologyScene make_scene(const Topology& topology, const ShownGraph& shown, const GraphLayout& layout,
                         const std::vector<OpenNode>& open, QRectF area, const SceneView& view,
                         const QFontMetricsF& metrics);

}  // namespace rehearse::gui
