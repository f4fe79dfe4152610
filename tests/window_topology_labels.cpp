// Checks that no name in the picture of a cluster is cut or covers another, on all fabrics at all sizes.
#include <fmt/format.h>

#include <QApplication>
#include <set>

#include "gui/models/topology/topology_layout.hpp"
#include "gui/views/topology/topology_scene.hpp"
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

struct Case {
  std::string name;
  int nodes = 0;
  std::string fabric;
};

std::string text_of(const Case& c, const std::string& node) {
  return fmt::format("[cluster]\nnodes = {}\n[cluster.node]\n{}\n[cluster.fabric]\nlatency_us = 1\n{}\n",
                     c.nodes, node, c.fabric);
}

// Switches of 16 nodes each, below one switch at the top.
std::string tree_of_links(int nodes) {
  std::string text = "kind = \"links\"\n";
  const auto link = [&](const std::string& a, const std::string& b) {
    text += fmt::format("[[cluster.link]]\na = \"{}\"\nb = \"{}\"\ngbps = 100\nlatency_us = 1\n", a, b);
  };
  for (int n = 0; n < nodes; ++n) link(fmt::format("node{}", n), fmt::format("s{}", n / 16));
  for (int s = 0; 16 * s < nodes; ++s) link(fmt::format("s{}", s), "top");
  return text;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, int nodes, const std::string& fabric) {
    all.push_back({name, nodes, "kind = \"" + name + "\"\n" + fabric});
  };
  struct Size {
    int nodes, per_leaf, spines, radix, routers, per_router;
    const char* dims;
  };
  for (const Size& s :
       {Size{8, 4, 2, 4, 2, 2, "[4, 2]"}, Size{128, 16, 4, 8, 4, 4, "[16, 8]"},
        Size{1024, 32, 16, 16, 8, 4, "[16, 8, 8]"}, Size{4096, 32, 32, 32, 16, 8, "[64, 64]"}}) {
    add("switch", s.nodes, "");
    add("leaf-spine", s.nodes, fmt::format("nodes_per_leaf = {}\nspines = {}", s.per_leaf, s.spines));
    add("rail", s.nodes, fmt::format("nodes_per_leaf = {}\nspines = {}", s.per_leaf, s.spines));
    add("fat-tree", s.nodes, fmt::format("radix = {}", s.radix));
    add("ring", s.nodes, "");
    add("torus", s.nodes, fmt::format("dims = {}", s.dims));
    add("dragonfly", s.nodes,
        fmt::format("routers_per_group = {}\nnodes_per_router = {}", s.routers, s.per_router));
    all.push_back({"links", s.nodes, tree_of_links(s.nodes)});
  }
  return all;
}

// The box and, of a group, the sheet behind it.
QRectF sheets_of(const SceneVertex& vertex) {
  return vertex.detail.isEmpty() ? vertex.box : vertex.box.adjusted(0, -kSheet, kSheet, 0);
}

QString place_of(const SceneLabel& label) {
  return QString("\"%1\" at %2, %3").arg(label.text).arg(label.box.x()).arg(label.box.y());
}

// Returns what is wrong with the names; `whole`: the picture is not zoomed.
QStringList faults_of(const TopologyScene& scene, const QFontMetricsF& metrics, bool whole) {
  QStringList faults;
  const auto bounds = [&](int vertex, const QRectF& place) {
    const int node = vertex >= 0 ? scene.vertices[vertex].node : -1;
    for (std::size_t i = 0; i < scene.frames.size(); ++i)
      if (scene.frame_nodes[i] == node || (vertex < 0 && scene.frames[i].intersects(place)))
        return scene.frames[i];
    return scene.graph;
  };
  std::set<std::pair<int, SceneLabel::Kind>> placed;
  for (const SceneLabel& label : scene.labels) placed.emplace(label.vertex, label.kind);
  for (int v = 0; v < static_cast<int>(scene.vertices.size()); ++v) {
    const SceneVertex& vertex = scene.vertices[v];
    if ((!vertex.shown.isEmpty() && placed.count({v, SceneLabel::Kind::name}) == 0) ||
        (!vertex.second.isEmpty() && placed.count({v, SceneLabel::Kind::detail}) == 0))
      faults << "the text of " + vertex.title + " is missing";
  }
  for (std::size_t i = 0; i < scene.labels.size(); ++i) {
    const SceneLabel& label = scene.labels[i];
    if (!bounds(label.vertex, label.box).contains(label.box)) faults << place_of(label) + " is outside";
    if (metrics.horizontalAdvance(label.text) > label.box.width() ||
        metrics.height() > label.box.height() + 0.01)
      faults << place_of(label) + " is cut";
    for (std::size_t j = 0; j < i; ++j)
      if (label.box.intersects(scene.labels[j].box))
        faults << place_of(label) + " covers " + place_of(scene.labels[j]);
    for (std::size_t v = 0; v < scene.vertices.size(); ++v)
      if (static_cast<int>(v) != label.vertex && sheets_of(scene.vertices[v]).intersects(label.box))
        faults << place_of(label) + " covers the box of " + scene.vertices[v].title;
    const bool inside = label.kind == SceneLabel::Kind::name || label.kind == SceneLabel::Kind::detail;
    if (inside && !scene.vertices[label.vertex].box.contains(label.box))
      faults << place_of(label) + " leaves its box";
  }
  if (whole)
    for (const SceneVertex& vertex : scene.vertices)
      if (!bounds(static_cast<int>(&vertex - scene.vertices.data()), vertex.box).contains(sheets_of(vertex)))
        faults << "the box of " + vertex.title + " is outside";
  std::vector<LinkLabel> wanted;
  for (std::size_t e = 0; e < scene.edges.size() && wanted.size() < 40; e += 1 + scene.edges.size() / 40)
    if (!scene.edges[e].there.empty()) wanted.push_back({static_cast<int>(e), "group12.rail3-spine12  34 %"});
  const std::vector<LinkLabel> links = place_link_names(scene, wanted, 6, metrics);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const QString told = QString("link name at %1, %2").arg(links[i].box.x()).arg(links[i].box.y());
    const bool in_frame = std::any_of(scene.frames.begin(), scene.frames.end(),
                                      [&](const QRectF& frame) { return frame.contains(links[i].box); });
    if (!in_frame && !scene.graph.contains(links[i].box)) faults << told + " is outside";
    for (std::size_t j = 0; j < i; ++j)
      if (links[i].box.intersects(links[j].box)) faults << told + " covers another";
    for (const SceneLabel& label : scene.labels)
      if (links[i].box.intersects(label.box)) faults << told + " covers " + place_of(label);
    for (const SceneVertex& vertex : scene.vertices)
      if (links[i].box.intersects(vertex.box)) faults << told + " covers the box of " + vertex.title;
  }
  return faults;
}

const char* const kNode =
    "device = \"a100-80\"\ndevices = 2\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 300\nnics = 2\n"
    "nic_gbps = 200";
const char* const kOneCard =
    "device = \"a100-80\"\ndevices = 1\ninterconnect = \"pcie\"\npcie_gb_per_s = 30\nnics = 1\nnic_gbps = "
    "200";

}  // namespace

TEST_CASE("No name in the picture of a cluster is cut or covers another, at any size of both") {
  QFont font = QApplication::font();
  SECTION("in the usual font") {}
  SECTION("in a large font") {
    font.setPointSizeF(1.7 * font.pointSizeF());
  }
  const QFontMetricsF metrics(font);
  for (const Case& c : cases()) {
    CAPTURE(c.name, c.nodes);
    const Topology topology(cluster_of(text_of(c, c.name == "rail" ? kNode : kOneCard)));
    const std::set<int> around_first = topology.groups_around(0),
                        around_last = topology.groups_around(c.nodes - 1);
    std::set<int> both = around_first;
    both.insert(around_last.begin(), around_last.end());
    for (const std::set<int>& groups : {std::set<int>{}, around_first, both}) {
      CAPTURE(groups.size());
      const ShownGraph shown = shown_graph(topology, groups);
      const GraphLayout layout = layout_of(topology, shown);
      for (const QSizeF& size : {QSizeF(250, 86), QSizeF(540, 260), QSizeF(930, 420), QSizeF(1900, 900)})
        for (const double zoom : {1.0, 4.0}) {
          CAPTURE(size.width(), size.height(), zoom);
          const QRectF area(QPointF(4, 4), size);
          const TopologyScene scene =
              make_scene(topology, shown, layout, {}, area, {zoom, QPointF(30, -20) * (zoom - 1)}, metrics);
          const QStringList faults = faults_of(scene, metrics, zoom == 1);
          CAPTURE(faults.size());
          CHECK(faults.mid(0, 3).join("; ").toStdString() == "");
          if (zoom != 1 || size.width() < 900 || !groups.empty() || font != QApplication::font()) continue;
          // Something is named in every layer.
          std::set<int> layers, named;
          for (const SceneVertex& vertex : scene.vertices) layers.insert(shown.vertices[vertex.vertex].layer);
          for (const SceneLabel& label : scene.labels)
            named.insert(shown.vertices[scene.vertices[label.vertex].vertex].layer);
          CHECK(layers == named);
        }
    }
  }
}

TEST_CASE("Names in opened nodes are whole") {
  const QFontMetricsF metrics(QApplication::font());
  const std::string sockets =
      "device = \"a100-80\"\ndevices = 8\ninterconnect = \"pcie\"\npcie_gb_per_s = 30\n"
      "sockets = 2\ninter_socket_gb_per_s = 60\nnics = 4\nnic_gbps = 200";
  const std::string wide =
      "device = \"a100-80\"\ndevices = 72\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 900\n"
      "pcie_gb_per_s = 60\nnics = 72\nnic_gbps = 400";
  for (const std::string& node : {std::string(kNode), std::string(kOneCard), sockets, wide}) {
    CAPTURE(node);
    const Case c = {"leaf-spine", 128, "kind = \"leaf-spine\"\nnodes_per_leaf = 16\nspines = 4"};
    const Topology topology(cluster_of(text_of(c, node)));
    const ShownGraph shown = shown_graph(topology, {});
    const GraphLayout layout = layout_of(topology, shown);
    const std::vector<OpenNode> two = {{3, inside_of(topology.cluster(), 3)},
                                       {100, inside_of(topology.cluster(), 100)}};
    for (const std::vector<OpenNode>& open : {std::vector<OpenNode>{two.front()}, two})
      for (const QSizeF& size : {QSizeF(250, 86), QSizeF(540, 260), QSizeF(930, 420), QSizeF(1900, 900)}) {
        CAPTURE(open.size(), size.width(), size.height());
        const TopologyScene scene =
            make_scene(topology, shown, layout, open, {QPointF(4, 4), size}, {}, metrics);
        CHECK(faults_of(scene, metrics, true).mid(0, 3).join("; ").toStdString() == "");
      }
  }
}

TEST_CASE("Boxes without room for names are named together") {
  const Case c = {"leaf-spine", 128, "kind = \"leaf-spine\"\nnodes_per_leaf = 128\nspines = 1"};
  const Topology topology(cluster_of(text_of(c, kOneCard)));
  const ShownGraph shown = shown_graph(topology, topology.groups_around(0));
  const TopologyScene scene = make_scene(topology, shown, layout_of(topology, shown), {}, {0, 0, 540, 260},
                                         {}, QFontMetricsF(QApplication::font()));
  QStringList ranges;
  for (const SceneLabel& label : scene.labels)
    if (label.kind == SceneLabel::Kind::range) ranges << label.text;
  CHECK(ranges == QStringList{"node0 ... node127 (128)"});
}
