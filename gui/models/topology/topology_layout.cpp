#include "gui/models/topology/topology_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "topologies/cabling.hpp"

namespace rehearse::gui {

namespace {

constexpr double kGap = 0.7;  // between two columns
constexpr double kWidest =
    28;  // of a column: of opened groups, others still leave room for names of the closed

// The vertices of one unit, or of units that are drawn as one, by layer.
struct Column {
  std::map<int, std::vector<int>> layers;
  double begin = 0, width = 0;
};

double weight_of(const ShownGraph::Vertex& vertex) {
  if (vertex.members > 1) return 1.8;
  return vertex.layer == 0 ? 1 : 1.4;
}

bool is_above(const ShownGraph::Vertex& vertex) {
  return vertex.unit < 0 && vertex.layer > 0;
}

// Arranges the columns side by side in the order of their units; returns their total width.
double line_up(const ShownGraph& graph, std::map<int, Column>& columns) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const ShownGraph::Vertex& vertex = graph.vertices[v];
    if (is_above(vertex)) continue;
    const int key = vertex.unit < 0 ? std::numeric_limits<int>::max() : vertex.unit;
    columns[key].layers[vertex.layer].push_back(static_cast<int>(v));
  }
  double x = 0;
  for (auto& [key, column] : columns) {
    for (const auto& [layer, vertices] : column.layers) {
      double width = 0;
      for (const int v : vertices) width += weight_of(graph.vertices[v]);
      column.width = std::max(column.width, std::min(width, kWidest));
    }
    column.begin = x;
    x += column.width + (columns.size() > 1 ? kGap : 0);
  }
  return std::max(1.0, x);
}

// Returns the x of every vertex; those above all units are spread over the entire width.
std::vector<double> along(const ShownGraph& graph, double& width) {
  std::map<int, Column> columns;
  width = line_up(graph, columns);
  std::vector<double> x(graph.vertices.size(), 0);
  for (const auto& [key, column] : columns)
    for (const auto& [layer, vertices] : column.layers)
      for (std::size_t i = 0; i < vertices.size(); ++i)
        x[vertices[i]] = column.begin +
                         column.width * (static_cast<double>(i) + 0.5) / static_cast<double>(vertices.size());
  std::map<int, std::vector<int>> above;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    if (is_above(graph.vertices[v])) above[graph.vertices[v].layer].push_back(static_cast<int>(v));
  const double used = width - (columns.size() > 1 ? kGap : 0);
  for (const auto& [layer, vertices] : above)
    for (std::size_t i = 0; i < vertices.size(); ++i)
      x[vertices[i]] = used * (static_cast<double>(i) + 0.5) / static_cast<double>(vertices.size());
  return x;
}

GraphLayout in_tiers(const Topology& topology, const ShownGraph& graph) {
  GraphLayout layout;
  layout.tiers = true;
  layout.most_stretch = std::numeric_limits<double>::infinity();
  const std::vector<double> x = along(graph, layout.width);
  layout.height = std::max(1, topology.layers() - 1);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v)
    layout.at.push_back({x[v], layout.height - graph.vertices[v].layer});
  return layout;
}

GraphLayout around(const Topology& topology, const ShownGraph& graph) {
  GraphLayout layout;
  layout.width = layout.height = 2;
  layout.most_stretch = 2.6;
  double length = 1;
  const std::vector<double> x = along(graph, length);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    // Layers farther from the nodes are closer to the center.
    const int layers = std::max(1, topology.layers() - 1);
    const double radius =
        is_above(graph.vertices[v]) ? 0 : 1 - 0.35 * graph.vertices[v].layer / static_cast<double>(layers);
    const double angle = 2 * std::numbers::pi * x[v] / length - std::numbers::pi / 2;
    layout.at.push_back({1 + radius * std::cos(angle), 1 + radius * std::sin(angle)});
  }
  return layout;
}

int place_number(const Topology& topology, int place) {
  int number = place;
  if (topology.places()[place].kind == Place::Kind::idle)
    is_number(topology.places()[place].name, "idle", number);
  return number;
}

GraphLayout on_grid(const Topology& topology, const ShownGraph& graph) {
  const std::vector<int>& dims = topology.cluster().fabric().dims;
  const int columns = dims[0], rows = dims.size() > 1 ? dims[1] : 1;
  int planes = 1;
  for (std::size_t d = 2; d < dims.size(); ++d) planes *= dims[d];
  GraphLayout layout;
  layout.most_stretch = 2;
  if (topology.groups().empty()) {
    // Shifts each plane up and to the right, so that no node hides another.
    const double slant = planes > 1 ? 0.8 / planes : 0;
    layout.width = std::max(1.0, columns - 1 + slant * (planes - 1));
    layout.height = std::max(1.0, rows - 1 + 0.8 * slant * (planes - 1));
    for (const ShownGraph::Vertex& vertex : graph.vertices) {
      const int number = place_number(topology, vertex.place);
      const int plane = number / (columns * rows);
      layout.at.push_back(
          {number % columns + slant * plane, number / columns % rows + 0.8 * slant * (planes - 1 - plane)});
    }
    return layout;
  }
  // Cells of equal size, one for each plane (with two dimensions: each row), closed or with its nodes.
  const int units = planes > 1 ? planes : rows;
  int cell_columns = columns, cell_rows = planes > 1 ? rows : 1;
  if (planes == 1) {
    cell_columns = static_cast<int>(std::ceil(std::sqrt(columns)));
    cell_rows = (columns + cell_columns - 1) / cell_columns;
  }
  const int beside = static_cast<int>(std::ceil(std::sqrt(units)));
  const double cell_width = cell_columns + 1, cell_height = cell_rows + 1;
  const int a_unit = planes > 1 ? columns * rows : columns;
  for (const ShownGraph::Vertex& vertex : graph.vertices) {
    const int number = place_number(topology, vertex.place);
    const int unit = number / a_unit, in_unit = number % a_unit;
    const int unit_row = unit / beside, row = in_unit / cell_columns;
    // A group of several units stands in the middle of their cells.
    const int last = place_number(topology, vertex.last_place) / a_unit;
    const double column =
        last / beside == unit_row ? (unit % beside + last % beside) / 2.0 : (beside - 1) / 2.0;
    const double middle = (unit_row + last / beside) / 2.0;
    layout.at.push_back(vertex.members > 1 ? Spot{column * cell_width + (cell_columns - 1) / 2.0,
                                                  middle * cell_height + (cell_rows - 1) / 2.0}
                                           : Spot{unit % beside * cell_width + in_unit % cell_columns,
                                                  unit_row * cell_height + row});
  }
  layout.width = beside * cell_width - 2;
  const int unit_rows = (units + beside - 1) / beside;
  layout.height = unit_rows * cell_height - 2;
  return layout;
}

}  // namespace

GraphLayout layout_of(const Topology& topology, const ShownGraph& graph) {
  const Fabric& fabric = topology.cluster().fabric();
  if (fabric.kind == Fabric::Kind::torus && fabric.dims.size() > 1) return on_grid(topology, graph);
  if (fabric.kind == Fabric::Kind::dragonfly || topology.layers() == 1) return around(topology, graph);
  return in_tiers(topology, graph);
}

GraphLayout layout_of(const NodeInside& inside) {
  GraphLayout layout;
  layout.tiers = true;
  layout.most_stretch = std::numeric_limits<double>::infinity();
  std::map<int, std::vector<int>> layers;
  std::size_t widest = 1;
  for (std::size_t p = 0; p < inside.parts.size(); ++p) {
    std::vector<int>& layer = layers[inside.parts[p].layer];
    layer.push_back(static_cast<int>(p));
    widest = std::max(widest, layer.size());
  }
  layout.width = static_cast<double>(widest);
  layout.height = layers.empty() ? 1 : std::max(1, layers.rbegin()->first);
  layout.at.resize(inside.parts.size());
  for (const auto& [layer, parts] : layers)
    for (std::size_t i = 0; i < parts.size(); ++i)
      layout.at[parts[i]] = {
          layout.width * (static_cast<double>(i) + 0.5) / static_cast<double>(parts.size()),
          layout.height - layer};
  return layout;
}

}  // namespace rehearse::gui
