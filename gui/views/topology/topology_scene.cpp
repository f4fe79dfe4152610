#include "gui/views/topology/topology_scene.hpp"

#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace rehearse::gui {

namespace {

constexpr double kHit = 6;        // pixels; greatest distance of a hit
constexpr double kMostBox = 124;  // greatest width of a box, in pixels
constexpr double kLine = 3.6;     // greatest width of one direction of a line, in pixels

QPointF control_of(const SceneEdge& edge) {
  const QPointF middle = (edge.a + edge.b) / 2, along = edge.b - edge.a;
  const double length = std::max(1e-6, std::hypot(along.x(), along.y()));
  return middle + QPointF(-along.y(), along.x()) / length * edge.bend * 2;
}

// Returns the numbers at the end of a name: "44-47" for "leaf44-47", "3" for "leaf3".
QString numbers_of(const QString& name) {
  static const QRegularExpression kNumbers("[0-9]+(-[0-9]+)?$");
  const int first = static_cast<int>(name.indexOf(kNumbers));
  return first < 0 ? QString() : name.mid(first);
}

// Returns the longest form of a name that fits: all of it, the number at its end, or an empty string.
QString fitting(const QString& name, double width, const QFontMetricsF& metrics) {
  if (metrics.horizontalAdvance(name) <= width) return name;
  int digits = static_cast<int>(name.size());
  while (digits > 0 && name[digits - 1].isDigit()) --digits;
  const QString number = name.mid(digits);
  return !number.isEmpty() && metrics.horizontalAdvance(number) <= width ? number : QString();
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
    }
    place_graph(view);
    for (std::size_t i = 0; i < open.size(); ++i) place_inside(open[i], scene_.frames[i]);
    set_widths();
    return std::move(scene_);
  }

private:
  struct Size {
    double width = 20, height = 20;
  };

  void place_graph(const SceneView& view) {
    const QRectF room = room_of(scene_.graph);
    double x_scale = room.width() / std::max(1e-9, layout_.width);
    double y_scale = room.height() / std::max(1e-9, layout_.height);
    x_scale = std::min(x_scale, y_scale * layout_.most_stretch) * view.zoom;
    y_scale = std::min(y_scale, x_scale / view.zoom * layout_.most_stretch) * view.zoom;
    const QPointF centre = room.center() + view.moved;
    std::vector<QPointF> at;
    for (const Spot& spot : layout_.at)
      at.push_back(centre +
                   QPointF((spot.x - layout_.width / 2) * x_scale, (spot.y - layout_.height / 2) * y_scale));
    const std::vector<Size> sizes = layout_.tiers ? sizes_in_tiers(at, y_scale) : sizes_around(at);
    for (std::size_t v = 0; v < at.size(); ++v) {
      const ShownGraph::Vertex& vertex = shown_.vertices[v];
      SceneVertex box;
      box.box = QRectF(at[v].x() - sizes[v].width / 2, at[v].y() - sizes[v].height / 2, sizes[v].width,
                       sizes[v].height);
      box.title = QString::fromStdString(vertex.title);
      box.detail = QString::fromStdString(vertex.detail);
      box.is_switch = vertex.layer > 0;
      box.idle = topology_.places()[vertex.place].kind == Place::Kind::idle;
      box.vertex = static_cast<int>(v);
      fit_text(box);
      scene_.vertices.push_back(box);
    }
    fit_alike(0);
    if (!layout_.tiers) name_beside();
    for (const ShownGraph::Edge& edge : shown_.edges) add_edge(edge);
  }

  void fit_text(SceneVertex& box) const {
    const double room = box.box.width() - 3;
    if (box.box.height() < metrics_.height()) return;
    box.shown = fitting(box.title, room, metrics_);
    if (box.shown.isEmpty() && !box.detail.isEmpty()) {
      // Shorten "16 nodes" to "16".
      const QString count = box.title.section(' ', 0, 0);
      if (metrics_.horizontalAdvance(count) <= room) box.shown = count;
    }
    if (box.detail.isEmpty() || box.box.height() < 2 * metrics_.height() || box.shown != box.title) return;
    for (const QString& detail : {box.detail, numbers_of(box.detail)}) {
      if (detail.isEmpty() || metrics_.horizontalAdvance(detail) > room) continue;
      box.second = detail;
      return;
    }
  }

  // Makes the names of a layer uniform: all with second lines, all in full, all as numbers, or none.
  void fit_alike(std::size_t first) {
    std::map<std::tuple<int, int, bool>, std::vector<SceneVertex*>> layers;
    for (std::size_t v = first; v < scene_.vertices.size(); ++v) {
      SceneVertex& vertex = scene_.vertices[v];
      const int layer = vertex.vertex >= 0 ? shown_.vertices[vertex.vertex].layer : vertex.layer;
      // Servers have their own numbering, so treat them separately.
      const bool server =
          vertex.vertex >= 0 &&
          topology_.places()[shown_.vertices[vertex.vertex].place].kind == Place::Kind::server;
      layers[{layer, vertex.detail.isEmpty(), server}].push_back(&vertex);
    }
    for (const auto& [layer, of_layer] : layers) {
      const std::vector<SceneVertex*>& vertices = of_layer;
      const auto all = [&](auto holds) { return std::all_of(vertices.begin(), vertices.end(), holds); };
      const bool second = all([](const SceneVertex* v) { return !v->second.isEmpty(); });
      const bool whole_second = all([](const SceneVertex* v) { return v->second == v->detail; });
      const bool whole = all([](const SceneVertex* v) { return v->shown == v->title; });
      const bool some = all([](const SceneVertex* v) { return !v->shown.isEmpty(); });
      for (SceneVertex* const vertex : vertices) {
        if (!second)
          vertex->second.clear();
        else if (!whole_second)
          vertex->second = numbers_of(vertex->detail);
        if (!some)
          vertex->shown.clear();
        else if (!whole && vertex->detail.isEmpty() && !numbers_of(vertex->title).isEmpty())
          vertex->shown = numbers_of(vertex->title);
        else if (!whole && !vertex->detail.isEmpty())
          vertex->shown = vertex->title.section(' ', 0, 0);
      }
      // Write what the numbers count beside the leftmost one.
      SceneVertex* const leftmost = *std::min_element(
          vertices.begin(), vertices.end(),
          [](const SceneVertex* a, const SceneVertex* b) { return a->box.left() < b->box.left(); });
      const QString noun = leftmost->detail.isEmpty()
                               ? leftmost->title.chopped(numbers_of(leftmost->title).size())
                               : leftmost->title.section(' ', 1);
      if (layout_.tiers && some && !whole && leftmost->part < 0) leftmost->noun = noun;
    }
  }

  // Writes the names, or else the numbers, of vertices without room for them beside the box, outwards from
  // the centre and only where they overlap nothing.
  void name_beside() {
    const QPointF centre = scene_.graph.center();
    const auto place_of = [&](const SceneVertex& vertex, const QString& text) {
      const QSizeF size(metrics_.horizontalAdvance(text) + 2, metrics_.height());
      QPointF out = vertex.box.center() - centre;
      out /= std::max(1e-6, std::hypot(out.x(), out.y()));
      // Move it outwards until the text touches the box from outside.
      const double away =
          std::min((vertex.box.width() + size.width()) / 2 / std::max(1e-6, std::abs(out.x())),
                   (vertex.box.height() + size.height()) / 2 / std::max(1e-6, std::abs(out.y())));
      const QPointF at = vertex.box.center() + out * (away + 1);
      return QRectF(at.x() - size.width() / 2, at.y() - size.height() / 2, size.width(), size.height());
    };
    std::vector<QRectF> taken;
    const auto free = [&](const QRectF& place, const SceneVertex& of) {
      return scene_.graph.contains(place) &&
             std::none_of(taken.begin(), taken.end(),
                          [&](const QRectF& other) { return other.intersects(place); }) &&
             std::none_of(scene_.vertices.begin(), scene_.vertices.end(),
                          [&](const SceneVertex& v) { return &v != &of && v.box.intersects(place); });
    };
    for (const bool switches : {false, true}) {  // nodes first, because they matter more than switches
      std::vector<SceneVertex*> nameless;
      for (SceneVertex& vertex : scene_.vertices)
        if (vertex.shown.isEmpty() && vertex.is_switch == switches) nameless.push_back(&vertex);
      std::vector<QRectF> whole;
      const std::size_t before = taken.size();
      for (const SceneVertex* vertex : nameless) {
        const QRectF place = place_of(*vertex, vertex->title);
        if (!free(place, *vertex)) break;
        whole.push_back(place);
        taken.push_back(place);
      }
      const bool all = whole.size() == nameless.size();
      if (!all) taken.resize(before);
      for (std::size_t i = 0; i < nameless.size(); ++i) {
        SceneVertex& vertex = *nameless[i];
        const QString number = numbers_of(vertex.title);
        if (all) {
          vertex.aside = vertex.title;
          vertex.aside_box = whole[i];
          continue;
        }
        // The first vertex gets its full name, which says what the numbers count.
        for (const QString& text : {i == 0 || number.isEmpty() ? vertex.title : number, number}) {
          const QRectF place = place_of(vertex, text);
          if (text.isEmpty() || !free(place, vertex)) continue;
          vertex.aside = text;
          vertex.aside_box = place;
          taken.push_back(place);
          break;
        }
      }
    }
  }

  std::vector<Size> sizes_in_tiers(const std::vector<QPointF>& at, double y_scale) const {
    std::map<int, std::vector<double>> layers;
    std::vector<Size> sizes(at.size());
    for (std::size_t v = 0; v < at.size(); ++v) layers[shown_.vertices[v].layer].push_back(at[v].x());
    std::map<int, double> room;
    for (auto& [layer, x] : layers) {
      std::sort(x.begin(), x.end());
      double least = kMostBox / 0.84;
      for (std::size_t i = 1; i < x.size(); ++i) least = std::min(least, x[i] - x[i - 1]);
      room[layer] = least;
    }
    std::map<int, bool> two;  // by layer: whether all its groups have room for a second line
    for (std::size_t v = 0; v < at.size(); ++v) {
      const ShownGraph::Vertex& vertex = shown_.vertices[v];
      if (vertex.members == 1) continue;
      const double width = std::min(room[vertex.layer] * 0.84, kMostBox);
      const QString title = QString::fromStdString(vertex.title);
      const QString numbers = numbers_of(QString::fromStdString(vertex.detail));
      bool& all = two.try_emplace(vertex.layer, true).first->second;
      for (const QString& text : {title, numbers}) all = all && metrics_.horizontalAdvance(text) + 3 <= width;
    }
    const double highest = std::max(8.0, y_scale * 0.42);
    for (std::size_t v = 0; v < at.size(); ++v) {
      const ShownGraph::Vertex& vertex = shown_.vertices[v];
      const double line = metrics_.height();
      sizes[v].width = std::clamp(room[vertex.layer] * 0.84, 4.0, kMostBox);
      const bool tall = vertex.members > 1 && two[vertex.layer];
      sizes[v].height = std::min(highest, tall ? 2 * line + 8 : line + 8);
    }
    return sizes;
  }

  std::vector<Size> sizes_around(const std::vector<QPointF>& at) const {
    double least = kMostBox * 2;
    for (std::size_t a = 0; a < at.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        least = std::min(least, std::hypot(at[a].x() - at[b].x(), at[a].y() - at[b].y()));
    std::vector<Size> sizes(at.size());
    for (std::size_t v = 0; v < at.size(); ++v) {
      const ShownGraph::Vertex& vertex = shown_.vertices[v];
      const double line = metrics_.height();
      const double lines = vertex.members > 1 && least * 0.7 > 70 ? 2 : 1;
      sizes[v] = {std::clamp(least * 0.7, 5.0, vertex.members > 1 ? 104.0 : 64.0),
                  std::clamp(least * 0.5, 5.0, lines * line + 6)};
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
    for (const NodeInside::Part& part : open.inside.parts) ++widest[part.layer];
    const int first = static_cast<int>(scene_.vertices.size());
    for (std::size_t p = 0; p < open.inside.parts.size(); ++p) {
      const NodeInside::Part& part = open.inside.parts[p];
      const bool bar = part.kind == NodeInside::Part::Kind::nvswitch ||
                       part.kind == NodeInside::Part::Kind::network ||
                       (part.kind == NodeInside::Part::Kind::pcie && widest[part.layer] == 1);
      const double each = room.width() / static_cast<double>(widest[part.layer]);
      const double step = room.height() / (layout.height + 1);
      SceneVertex box;
      const double width = bar ? room.width() * 0.9 : std::clamp(each * 0.84, 5.0, 76.0);
      const double height = std::min(metrics_.height() + 6, step * 0.6);
      const QPointF at(room.left() + room.width() * layout.at[p].x / layout.width,
                       room.top() + room.height() * (layout.at[p].y + 0.5) / (layout.height + 1));
      box.box = QRectF(at.x() - width / 2, at.y() - height / 2, width, height);
      box.title = QString::fromStdString(part.name);
      box.is_switch = bar || part.kind == NodeInside::Part::Kind::pcie;
      box.node = open.node;
      box.part = static_cast<int>(p);
      box.layer = 2 * part.layer + (bar ? 1 : 0);
      fit_text(box);
      scene_.vertices.push_back(box);
    }
    fit_alike(static_cast<std::size_t>(first));
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
      if (open.inside.parts[wire.a].layer == open.inside.parts[wire.b].layer) {
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

QRectF room_of(const QRectF& graph) {
  return graph.adjusted(34, 26, -34, -30);
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
