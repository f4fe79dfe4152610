// Checks names in the picture of a cluster: separately numbered servers, nodes without room for their names,
// and columns.
#include <QApplication>
#include <QTableView>
#include <QtTest>
#include <set>

#include "gui/models/topology/topology_layout.hpp"
#include "gui/views/topology/topology_scene.hpp"
#include "gui/views/topology/topology_view.hpp"
#include "tests/topologies_cases.hpp"
#include "tests/window_support.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

TopologyScene scene_of(const std::string& text) {
  const Topology topology(cluster_of(text));
  const ShownGraph shown = shown_graph(topology, {});
  return make_scene(topology, shown, layout_of(topology, shown), {}, {0, 0, 540, 260}, {},
                    QFontMetricsF(QApplication::font()));
}

std::string cluster(const std::string& head, const std::string& fabric) {
  return "[cluster]\n" + head +
         "\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\ninterconnect = \"pcie\"\npcie_gb_per_s = 30\n"
         "nics = 1\nnic_gbps = 200\n[cluster.fabric]\nlatency_us = 1\n" +
         fabric + "\n";
}

}  // namespace

TEST_CASE("Servers are numbered by themselves, under a name of their own") {
  const TopologyScene scene = scene_of(cluster("nodes = 8\nserver_nodes = 8", "kind = \"switch\""));
  QStringList nouns;
  for (const SceneLabel& label : scene.labels)
    if (label.kind == SceneLabel::Kind::noun)
      nouns << label.text + " beside " + scene.vertices[label.vertex].shown;
  CHECK(nouns == QStringList{"node beside 0", "server beside 0"});
}

TEST_CASE("Nodes of a dragonfly have their names or numbers beside them") {
  const TopologyScene scene =
      scene_of(cluster("nodes = 36", "kind = \"dragonfly\"\nrouters_per_group = 4\nnodes_per_router = 2"));
  int nodes = 0;
  std::set<int> named;
  for (const SceneLabel& label : scene.labels) {
    named.insert(label.vertex);
    CHECK(scene.vertices[label.vertex].title.endsWith(label.text));
  }
  for (int v = 0; v < static_cast<int>(scene.vertices.size()); ++v) {
    if (scene.vertices[v].is_switch || scene.vertices[v].idle) continue;
    ++nodes;
    CHECK(named.count(v) == 1);
  }
  CHECK(nodes == 36);
}

TEST_CASE("Names of links are whole in a window of 1280 pixels") {
  MainWindow window;
  shown(window);
  window.open_files({servers_trace()});
  settle(window);
  window.show_view("topology");
  auto* view = static_cast<TopologyView*>(window.view("topology"));
  REQUIRE(wait_for([&] { return view->is_ready(); }));
  const QTableView* links = nullptr;
  for (const auto* table : view->findChildren<QTableView*>())
    if (table->accessibleName() == "Busiest links") links = table;
  REQUIRE(links != nullptr);
  REQUIRE(wait_for([&] { return links->model()->rowCount() > 0; }));
  for (int row = 0; row < links->model()->rowCount(); ++row) {
    const QString name = links->model()->index(row, 0).data().toString();
    CAPTURE(name.toStdString());
    CHECK(links->fontMetrics().horizontalAdvance(name) < links->columnWidth(0));
  }
}
