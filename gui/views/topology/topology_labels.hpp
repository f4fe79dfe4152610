// Places the names in the picture of a topology: none is cut, and none covers another or a box of another.
#pragma once

#include <QFontMetricsF>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <vector>

#include "gui/models/topology/topology_graph.hpp"

namespace rehearse::gui {

struct TopologyScene;

struct SceneLabel {
  // name, detail: the two lines in a box. noun: what the numbers in boxes count. beside: of a box that has no
  // room for it. range: of several such boxes, "node0 ... node127 (128)". frame: of an opened node.
  enum class Kind { name, detail, noun, beside, range, frame };
  Kind kind = Kind::name;
  QRectF box;
  QString text;
  int vertex = -1;  // index in the scene's vertices; -1 for a frame
};

// Fills in the scene's labels. What has no room has no label; its name is in the tooltip of its box.
void place_labels(TopologyScene& scene, const Topology& topology, const ShownGraph& shown, bool tiers,
                  const QFontMetricsF& metrics);

// The name of a link, on its line or beside it.
struct LinkLabel {
  int edge = -1;
  QString text;
  QRectF box;
  QPointF on;          // the point of the line that it belongs to
  bool apart = false;  // not on its line, so that a short line must join them
};
// Places the wanted names, of an edge each, the first ones first, as far as there is room, and at most
// `most`.
std::vector<LinkLabel> place_link_names(const TopologyScene& scene, const std::vector<LinkLabel>& wanted,
                                        std::size_t most, const QFontMetricsF& metrics);

}  // namespace rehearse::gui
