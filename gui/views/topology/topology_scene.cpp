#include "gui/views/topology/topology_scene.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace rehearse::gui {

namespace {

constexpr double kHit = 6;        // pixels; greatest distance of a hit
constexpr double kMostBox = 124;  // greatest width of a box, in pixels
constexpr double kLeastBox = 1.5;
constexpr double kFilled = 0.84;  // share of the distance between two boxes of a layer that they fill
constexpr double kLine = 3.6;     // greatest width of one direction of a line, in pixels

QPointF control_of(const SceneEdge& edge) {
  const QPointF middle = (edge.a + edge.b) / 2, along = edge.b - edge.a;
  const double length = std::max(1e-6, std::hypot(along.x(), along.y()));
  return middle + QPointF(-along.y(), along.x()) / length * edge.bend * 2;
}

class Maker {
public:
  Maker(const Topology& topology, const ShownGraph& shown, const GraphLayout& layout,
        const QFontMetricsF& metrics)
      : topology_(topology), shown_(shown), layout_(layout), metrics_(metrics) {}

  TopologyScene make(const std::vector<OpenNode>& open, QRectF area, const SceneView& view) {
    scene_.graph = area;
    if (!open.empty()) {
      const double width = std::clamp(area.width() * 0.42, std::min(250.0, area.width() * 0.55), 460.0);
      const QRectF side(area.right() - width, area.top(), width, area.height());
      scene_.graph.setRight(side.left() - 14);
      const double each = side.height() / static_cast<double>(open.size());
      for (std::size_t i = 0; i < open.size(); ++i)
        scene_.frames.emplace_back(side.left(), side.top() + each * static_cast<double>(i), side.width(),
                                   each - (i + 1 < open.size() ? 8 : 0));
      for (const OpenNode& one : open) scene_.frame_nodes.push_back(one.node);
    }
    place_graph(view);
    for (std::size_t i = 0; i < open.size(); ++i) place_inside(open[i], scene_.frames[i]);
    set_widths();
    place_labels(scene_, topology_, shown_, layout_.tiers, metrics_);
    return std::move(scene_);
  }

private:
  struct Size {
    double width = 20, height = 20;
  };

  struct Placed {
    std::vector<QPointF> at;
    std::vector<Size> sizes;
    QRectF box(std::size_t v) const {
      return {at[v].x() - sizes[v].width / 2, at[v].y() - sizes[v].height / 2, sizes[v].width,
              sizes[v].height};
    }
  };

  Placed placed_in(const QRectF& room, const SceneView& view) const {
    double x_scale = room.width() / std::max(1e-9, layout_.width);
    double y_scale = room.height() / std::max(1e-9, layout_.height);
    x_scale = std::min(x_scale, y_scale * layout_.most_stretch) * view.zoom;
    y_scale = std::min(y_scale, x_scale / view.zoom * layout_.most_stretch) * view.zoom;
    const QPointF centre = room.center() + view.moved;
    Placed placed;
    for (const Spot& spot : layout_.at)
      placed.at.push_back(
          centre + QPointF((spot.x - layout_.width / 2) * x_scale, (spot.y - layout_.height / 2) * y_scale));
    placed.sizes = layout_.tiers ? sizes_in_tiers(placed.at, y_scale) : sizes_around(placed.at);
    return placed;
  }

  // Returns where the centres of boxes can lie so that all boxes are whole, with room for text outside of
  // them if there is room at all: above and below tiers, and around other pictures for what groups hold.
  QRectF find_room() const {
    constexpr double kLeast = 12;  // pixels
    QRectF room = scene_.graph.adjusted(34, 26, -34, -30);
    const bool lines = layout_.tiers && scene_.graph.height() > 10 * metrics_.height();
    const double line = lines ? metrics_.height() + 5 : 0;
    double aside = 0;
    for (const ShownGraph::Vertex& vertex : shown_.vertices)
      if (!layout_.tiers && vertex.members > 1)
        aside = std::max(aside, metrics_.horizontalAdvance(numbers_of(vertex)) + 4);
    if (8 * aside > scene_.graph.width()) aside = 0;
    const QRectF inside = scene_.graph.adjusted(2 + aside, 2 + kSheet + line, -2 - kSheet - aside, -2 - line);
    for (int i = 0; i < 4; ++i) {
      const Placed placed = placed_in(room, {});
      QRectF all;
      for (std::size_t v = 0; v < placed.at.size(); ++v) all |= placed.box(v);
      if (inside.contains(all)) break;
      room.adjust(std::max(0.0, inside.left() - all.left()), std::max(0.0, inside.top() - all.top()),
                  -std::max(0.0, all.right() - inside.right()),
                  -std::max(0.0, all.bottom() - inside.bottom()));
      const QPointF centre = room.center();
      room.setSize({std::max(kLeast, room.width()), std::max(kLeast, room.height())});
      room.moveCenter(centre);
    }
    return room;
  }

  void place_graph(const SceneView& view) {
    scene_.room = find_room();
    const Placed placed = placed_in(scene_.room, view);
    for (std::size_t v = 0; v < placed.at.size(); ++v) {
      const ShownGraph::Vertex& vertex = shown_.vertices[v];
      SceneVertex box;
      box.box = placed.box(v);
      box.title = QString::fromStdString(vertex.title);
      box.detail = QString::fromStdString(vertex.detail);
      box.is_switch = vertex.layer > 0;
      box.idle = topology_.places()[vertex.place].kind == Place::Kind::idle;
      box.vertex = static_cast<int>(v);
      scene_.vertices.push_back(box);
    }
    for (const ShownGraph::Edge& edge : shown_.edges) add_edge(edge);
  }

  // The numbers of a group's members: "0-15".
  static QString numbers_of(const ShownGraph::Vertex& vertex) {
    const std::size_t first = vertex.detail.find_first_of("0123456789");
    return first == std::string::npos ? QString() : QString::fromStdString(vertex.detail.substr(first));
  }

  // Vertices of a layer are equally large, closed groups apart from single places, which can stand closer.
  static std::pair<int, bool> alike(const ShownGraph::Vertex& vertex) {
    return {vertex.layer, vertex.members > 1};
  }

  std::vector<Size> sizes_in_tiers(const std::vector<QPointF>& at, double y_scale) const {
    std::map<int, std::vector<std::size_t>> layers;
    std::vector<Size> sizes(at.size());
    for (std::size_t v = 0; v < at.size(); ++v) layers[shown_.vertices[v].layer].push_back(v);
    std::map<std::pair<int, bool>, double> room;
    for (auto& [layer, vertices] : layers) {
      std::sort(vertices.begin(), vertices.end(),
                [&](std::size_t a, std::size_t b) { return at[a].x() < at[b].x(); });
      for (std::size_t i = 0; i < vertices.size(); ++i) {
        double& least =
            room.try_emplace(alike(shown_.vertices[vertices[i]]), kMostBox / kFilled).first->second;
        if (i > 0) least = std::min(least, at[vertices[i]].x() - at[vertices[i - 1]].x());
        if (i + 1 < vertices.size()) least = std::min(least, at[vertices[i + 1]].x() - at[vertices[i]].x());
      }
    }
    std::map<int, bool> two;  // by layer: whether all its groups have room for a second line
    for (const ShownGraph::Vertex& vertex : shown_.vertices) {
      if (vertex.members == 1) continue;
      const double width = std::min(room[alike(vertex)] * kFilled, kMostBox);
      const QString title = QString::fromStdString(vertex.title);
      const QString numbers = numbers_of(vertex);
      bool& all = two.try_emplace(vertex.layer, true).first->second;
      for (const QString& text : {title, numbers}) all = all && metrics_.horizontalAdvance(text) + 3 <= width;
    }
    const double highest = std::max(8.0, y_scale * 0.42);
    for (std::size_t v = 0; v < at.size(); ++v) {
      const ShownGraph::Vertex& vertex = shown_.vertices[v];
      const double line = metrics_.height();
      sizes[v].width = std::clamp(room[alike(vertex)] * kFilled, kLeastBox, kMostBox);
      const bool tall = vertex.members > 1 && two[vertex.layer];
      sizes[v].height = std::min(highest, tall ? 2 * line + 8 : line + 8);
    }
    return sizes;
  }

  std::vector<Size> sizes_around(const std::vector<QPointF>& at) const {
    std::map<std::pair<int, bool>, double> room;  // distance to the nearest other vertex
    for (std::size_t a = 0; a < at.size(); ++a) {
      double& least = room.try_emplace(alike(shown_.vertices[a]), kMostBox * 2).first->second;
      for (std::size_t b = 0; b < at.size(); ++b)
        if (a != b) least = std::min(least, std::hypot(at[a].x() - at[b].x(), at[a].y() - at[b].y()));
    }
    std::vector<Size> sizes;
    for (const ShownGraph::Vertex& vertex : shown_.vertices) {
      const double line = metrics_.height(), least = room[alike(vertex)];
      const double lines = vertex.members > 1 && least * 0.7 > 70 ? 2 : 1;
      sizes.push_back({std::clamp(least * 0.7, kLeastBox, vertex.members > 1 ? 104.0 : 64.0),
                       std::clamp(least * 0.5, kLeastBox, lines * line + 6)});
    }
    return sizes;
  }

  void add_edge(const ShownGraph::Edge& edge) {
    SceneEdge line;
    for (std::size_t i = 0; i < edge.cables.size(); ++i) {
      const Cable& cable = topology_.cables()[edge.cables[i]];
      line.there.push_back(edge.turned[i] ? cable.back : cable.there);
      line.back.push_back(edge.turned[i] ? cable.there : cable.back);
    }
    line.capacity = topology_.cluster().bandwidth(line.there.front());
    const SceneVertex &a = scene_.vertices[edge.a], &b = scene_.vertices[edge.b];
    const int layer_a = shown_.vertices[edge.a].layer, layer_b = shown_.vertices[edge.b].layer;
    line.a = a.box.center();
    line.b = b.box.center();
    if (edge.a == edge.b) return;  // a cable within a folded group
    const double length = QLineF(line.a, line.b).length();
    if (layout_.tiers && layer_a != layer_b) {
      line.a = anchor(a.box, b.box.center());
      line.b = anchor(b.box, a.box.center());
    } else if (layout_.tiers) {
      line.bend = (line.a.x() < line.b.x() ? -1 : 1) * (6 + 0.12 * length);
    } else if (topology_.cluster().fabric().kind == Fabric::Kind::torus && is_around(edge)) {
      const QPointF aside(line.a.y() - line.b.y(), line.b.x() - line.a.x());
      const double inwards = QPointF::dotProduct(aside, scene_.graph.center() - (line.a + line.b) / 2);
      line.bend = (inwards < 0 ? -1 : 1) * (5 + 0.05 * length);
    }
    scene_.edges.push_back(std::move(line));
  }

  // Returns whether the edge wraps around a torus, from the end of a line of nodes back to its begin.
  bool is_around(const ShownGraph::Edge& edge) const {
    if (topology_.groups().empty()) {
      const Spot &a = layout_.at[edge.a], &b = layout_.at[edge.b];
      return std::abs(a.x - b.x) > 1.5 || std::abs(a.y - b.y) > 1.5;
    }
    return shown_.vertices[edge.a].members == 1 && shown_.vertices[edge.b].members == 1;
  }

  // Returns where a line to `other` leaves a box: at its lower or upper side, shifted towards `other`.
  static QPointF anchor(const QRectF& box, QPointF other) {
    const double dx = other.x() - box.center().x(), dy = other.y() - box.center().y();
    const double aside = std::clamp(dx * 0.25, -box.width() * 0.38, box.width() * 0.38);
    return {box.center().x() + aside, dy > 0 ? box.bottom() : box.top()};
  }

  void place_inside(const OpenNode& open, QRectF frame) {
    const GraphLayout layout = layout_of(open.inside);
    const QRectF room = frame.adjusted(10, metrics_.height() + 16, -10, -14);
    std::map<int, std::size_t> widest;
    std::vector<int> place_in;  // by part: its place in its layer
    for (const NodeInside::Part& part : open.inside.parts)
      place_in.push_back(static_cast<int>(widest[part.layer]++));
    const int first = static_cast<int>(scene_.vertices.size());
    for (std::size_t p = 0; p < open.inside.parts.size(); ++p) {
      const NodeInside::Part& part = open.inside.parts[p];
      const bool bar = part.kind == NodeInside::Part::Kind::nvswitch ||
                       part.kind == NodeInside::Part::Kind::network ||
                       (part.kind == NodeInside::Part::Kind::pcie && widest[part.layer] == 1);
      const double each = room.width() / static_cast<double>(widest[part.layer]);
      const double step = room.height() / (layout.height + 1);
      SceneVertex box;
      const double width = bar ? room.width() * 0.9 : std::clamp(each * kFilled, kLeastBox, 76.0);
      const double height = std::min(metrics_.height() + 6, step * 0.6);
      const QPointF at(room.left() + room.width() * layout.at[p].x / layout.width,
                       room.top() + room.height() * (layout.at[p].y + 0.5) / (layout.height + 1));
      box.box = QRectF(at.x() - width / 2, at.y() - height / 2, width, height);
      box.title = QString::fromStdString(part.name);
      box.is_switch = bar || part.kind == NodeInside::Part::Kind::pcie;
      box.node = open.node;
      box.part = static_cast<int>(p);
      const bool joint = part.kind == NodeInside::Part::Kind::between_sockets;
      box.layer = 3 * part.layer + (bar ? 1 : joint ? 2 : 0);
      scene_.vertices.push_back(box);
    }
    for (const NodeInside::Wire& wire : open.inside.wires) {
      SceneEdge line;
      line.node = open.node;
      if (wire.there >= 0) {
        line.there = {wire.there};
        line.back = {wire.back};
        line.capacity = topology_.cluster().bandwidth(wire.there);
      }
      const QRectF &a = scene_.vertices[first + wire.a].box, &b = scene_.vertices[first + wire.b].box;
      line.a = joint(a, b);
      line.b = joint(b, a);
      const bool is_neighbour = std::abs(place_in[wire.a] - place_in[wire.b]) == 1;
      if (open.inside.parts[wire.b].kind == NodeInside::Part::Kind::between_sockets && is_neighbour) {
        const bool right = a.center().x() < b.center().x();
        line.a = {right ? a.right() : a.left(), a.center().y()};
        line.b = {right ? b.left() : b.right(), b.center().y()};
      } else if (open.inside.parts[wire.a].layer == open.inside.parts[wire.b].layer) {
        line.a = {a.center().x(), a.bottom()};
        line.b = {b.center().x(), b.bottom()};
        const double length = std::abs(line.a.x() - line.b.x());
        line.bend = (line.a.x() < line.b.x() ? 1 : -1) * std::min(room.height() * 0.22, 6 + 0.16 * length);
      }
      scene_.edges.push_back(std::move(line));
    }
  }

  // Returns where a wire leaves a box; wires to a wide bar are vertical.
  static QPointF joint(const QRectF& box, const QRectF& other) {
    const double x = std::clamp(other.width() < box.width() ? other.center().x() : box.center().x(),
                                box.left() + 3, std::max(box.left() + 3, box.right() - 3));
    return {x, other.center().y() > box.center().y() ? box.bottom() : box.top()};
  }

  // Sets the widths of lines by their capacities; thinner if there are many lines.
  void set_widths() {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    std::size_t lines = 0;
    for (const SceneEdge& edge : scene_.edges) {
      if (edge.there.empty()) continue;
      least = std::min(least, edge.capacity);
      most = std::max(most, edge.capacity);
      ++lines;
    }
    if (lines == 0) return;
    scene_.least_capacity = least;
    scene_.most_capacity = most;
    for (SceneEdge& edge : scene_.edges) {
      if (edge.there.empty()) continue;
      const double share =
          most > least * 1.001 ? std::log(edge.capacity / least) / std::log(most / least) : 0.5;
      const double crowd = edge.node >= 0 || lines < 90 ? 1 : lines < 300 ? 0.62 : 0.4;
      edge.width = (1.4 + (kLine - 1.4) * share) * crowd;
    }
  }

  const Topology& topology_;
  const ShownGraph& shown_;
  const GraphLayout& layout_;
  const QFontMetricsF& metrics_;
  TopologyScene scene_;
};

}  // namespace

QPointF SceneEdge::at(double share) const {
  const QPointF control = control_of(*this);
  const double rest = 1 - share;
  return rest * rest * a + 2 * rest * share * control + share * share * b;
}

QPainterPath SceneEdge::path(double aside) const {
  const QPointF along = b - a;
  const double length = std::max(1e-6, std::hypot(along.x(), along.y()));
  const QPointF shift = QPointF(-along.y(), along.x()) / length * aside;
  QPainterPath path(a + shift);
  if (bend == 0)
    path.lineTo(b + shift);
  else
    path.quadTo(control_of(*this) + shift, b + shift);
  return path;
}

double SceneEdge::distance(QPointF point) const {
  const int pieces = bend == 0 ? 1 : 12;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < pieces; ++i) {
    const QPointF from = at(static_cast<double>(i) / pieces), to = at(static_cast<double>(i + 1) / pieces);
    const QPointF along = to - from, away = point - from;
    const double length = std::max(1e-9, QPointF::dotProduct(along, along));
    const double share = std::clamp(QPointF::dotProduct(away, along) / length, 0.0, 1.0);
    const QPointF off = away - along * share;
    least = std::min(least, std::hypot(off.x(), off.y()));
  }
  return least;
}

int TopologyScene::vertex_at(QPointF point) const {
  for (std::size_t v = vertices.size(); v-- > 0;)
    if (vertices[v].box.adjusted(-1, -1, 1, 1).contains(point)) return static_cast<int>(v);
  return -1;
}

int TopologyScene::edge_at(QPointF point) const {
  int best = -1;
  double least = kHit;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (edges[e].there.empty()) continue;
    const double distance = edges[e].distance(point);
    if (distance < least) {
      least = distance;
      best = static_cast<int>(e);
    }
  }
  return best;
}

int TopologyScene::vertex_of(int shown) const {
  for (std::size_t v = 0; v < vertices.size(); ++v)
    if (vertices[v].vertex == shown) return static_cast<int>(v);
  return -1;
}

TopologyScene make_scene(const Topology& topology, const ShownGraph& shown, const GraphLayout& layout,
                         const std::vector<OpenNode>& open, QRectF area, const SceneView& view,
                         const QFontMetricsF& metrics) {
  return Maker(topology, shown, layout, metrics).make(open, area, view);
}

}  // namespace rehearse::gui
