#include "gui/views/topology/topology_labels.hpp"

#include <QHash>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "gui/views/topology/topology_scene.hpp"

namespace rehearse::gui {

namespace {

// Returns the numbers at the end of a name: "44-47" for "leaf44-47", "3" for "leaf3", nothing for
// "group0.rail0 - group1.rail3".
QString numbers_of(const QString& name) {
  if (name.contains(' ')) return {};
  static const QRegularExpression kNumbers("[0-9]+(-[0-9]+)?$");
  const int first = static_cast<int>(name.indexOf(kNumbers));
  return first < 0 ? QString() : name.mid(first);
}

// Returns what precedes the numbers at the end of a name: "leaf".
QString stem_of(const QString& name) {
  return name.chopped(numbers_of(name).size());
}

// Returns the longest form of a name that fits: all of it, the number at its end, or an empty string.
QString fitting(const QString& name, double width, const QFontMetricsF& metrics) {
  if (metrics.horizontalAdvance(name) <= width) return name;
  int digits = static_cast<int>(name.size());
  while (digits > 0 && name[digits - 1].isDigit()) --digits;
  const QString number = name.mid(digits);
  return !number.isEmpty() && metrics.horizontalAdvance(number) <= width ? number : QString();
}

// Returns the box and, of a group, the sheet that is painted behind it.
QRectF sheets_of(const SceneVertex& vertex) {
  const double sheet = vertex.detail.isEmpty() ? 0 : kSheet;
  return vertex.box.adjusted(0, -sheet, sheet, 0);
}

// Rectangles, found by place.
class Rectangles {
public:
  void add(const QRectF& rect, int owner) {
    const int index = static_cast<int>(all_.size());
    all_.push_back({rect, owner});
    for_cells(rect, [&](Cell cell) {
      cells_[cell].push_back(index);
      return false;
    });
  }
  bool hits(const QRectF& rect, int but_of = -2) const {
    return for_cells(rect, [&](Cell cell) {
      const auto found = cells_.find(cell);
      return found != cells_.end() && std::any_of(found->begin(), found->end(), [&](int index) {
               return all_[index].owner != but_of && all_[index].rect.intersects(rect);
             });
    });
  }

private:
  using Cell = std::pair<int, int>;
  struct Owned {
    QRectF rect;
    int owner;
  };
  // Returns whether `visit` returned true for a cell, the last one that it visits.
  template <class Visit>
  static bool for_cells(const QRectF& rect, Visit visit) {
    constexpr double kCell = 64;  // pixels
    const auto cell = [](double at) { return static_cast<int>(std::floor(at / kCell)); };
    for (int x = cell(rect.left()); x <= cell(rect.right()); ++x)
      for (int y = cell(rect.top()); y <= cell(rect.bottom()); ++y)
        if (visit(Cell(x, y))) return true;
    return false;
  }
  std::vector<Owned> all_;
  QHash<Cell, std::vector<int>> cells_;
};

// Boxes of one layer that are named alike.
struct Alike {
  std::vector<int> vertices;  // from left to right
  bool is_switch = false, closed = false;
};

class Namer {
public:
  Namer(TopologyScene& scene, const Topology& topology, const ShownGraph& shown, bool tiers,
        const QFontMetricsF& metrics)
      : scene_(scene), topology_(topology), shown_(shown), tiers_(tiers), metrics_(metrics) {}

  void place() {
    scene_.labels.clear();
    for (int v = 0; v < count(); ++v)
      if (bounds(v).intersects(vertex(v).box)) boxes_.add(sheets_of(vertex(v)), v);
    for (const QRectF& frame : scene_.frames) frames_.add(frame, -1);
    name_frames();
    std::map<std::tuple<int, int, bool, bool>, Alike> layers;
    for (int v = 0; v < count(); ++v) {
      const SceneVertex& box = vertex(v);
      if (!bounds(v).contains(box.box)) continue;
      const int layer = box.vertex >= 0 ? shown_.vertices[box.vertex].layer : box.layer;
      // Servers are numbered by themselves.
      const bool server = box.vertex >= 0 &&
                          topology_.places()[shown_.vertices[box.vertex].place].kind == Place::Kind::server;
      Alike& alike = layers[{box.node, layer, !box.detail.isEmpty(), server}];
      alike.vertices.push_back(v);
      alike.is_switch = box.is_switch;
      alike.closed = !box.detail.isEmpty();
    }
    for (auto& [key, alike] : layers) {
      std::stable_sort(alike.vertices.begin(), alike.vertices.end(),
                       [&](int a, int b) { return vertex(a).box.left() < vertex(b).box.left(); });
      for (const int v : alike.vertices) fit_text(vertex(v));
      fit_alike(alike);
    }
    for (const auto& [key, alike] : layers)
      for (const int v : alike.vertices) name_inside(v);
    // Nodes first, because they matter more than switches.
    for (const bool switches : {false, true})
      for (const auto& [key, alike] : layers) {
        if (alike.is_switch != switches || std::get<0>(key) >= 0) continue;
        if (!tiers_)
          name_beside(alike);
        else if (vertex(alike.vertices.front()).shown.isEmpty())
          name_ranges(alike);
        else
          name_noun(alike);
      }
  }

private:
  int count() const { return static_cast<int>(scene_.vertices.size()); }
  SceneVertex& vertex(int v) { return scene_.vertices[static_cast<std::size_t>(v)]; }
  QRectF bounds(int v) { return vertex(v).node < 0 ? scene_.graph : scene_.frames[frame_of(vertex(v).node)]; }
  std::size_t frame_of(int node) const {
    const auto at = std::find(scene_.frame_nodes.begin(), scene_.frame_nodes.end(), node);
    return static_cast<std::size_t>(at - scene_.frame_nodes.begin());
  }
  QSizeF size_of(const QString& text) const {
    return {metrics_.horizontalAdvance(text) + 2, metrics_.height()};
  }
  static QRectF around(QPointF centre, QSizeF size) {
    return {centre.x() - size.width() / 2, centre.y() - size.height() / 2, size.width(), size.height()};
  }
  bool is_free(const QRectF& place, int of) {
    return !labels_.hits(place) && !boxes_.hits(place, of) && bounds(of).contains(place) &&
           (vertex(of).node >= 0 || !frames_.hits(place));
  }
  void add(SceneLabel::Kind kind, const QRectF& place, const QString& text, int of) {
    labels_.add(place, of);
    scene_.labels.push_back({kind, place, text, of});
  }
  bool add_if_free(SceneLabel::Kind kind, const QRectF& place, const QString& text, int of) {
    if (!is_free(place, of)) return false;
    add(kind, place, text, of);
    return true;
  }

  void name_frames() {
    QFontMetricsF metrics = metrics_;
    for (std::size_t i = 0; i < scene_.frames.size(); ++i) {
      const QString name =
          QString::fromStdString(topology_.places()[static_cast<std::size_t>(scene_.frame_nodes[i])].name);
      // Titles are bold, so leave some more room.
      const QRectF place(scene_.frames[i].topLeft() + QPointF(10, 5),
                         QSizeF(metrics.horizontalAdvance(name) * 1.2 + 2, metrics.height()));
      if (!scene_.frames[i].contains(place)) continue;
      labels_.add(place, -1);
      scene_.labels.push_back({SceneLabel::Kind::frame, place, name, -1});
    }
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

  // Makes the names uniform: all with second lines, all in full, all as numbers, or none.
  void fit_alike(const Alike& alike) {
    const auto all = [&](auto holds) {
      return std::all_of(alike.vertices.begin(), alike.vertices.end(),
                         [&](int v) { return holds(vertex(v)); });
    };
    const bool second = all([](const SceneVertex& v) { return !v.second.isEmpty(); });
    const bool whole_second = all([](const SceneVertex& v) { return v.second == v.detail; });
    const bool whole = all([](const SceneVertex& v) { return v.shown == v.title; });
    const bool some = all([](const SceneVertex& v) { return !v.shown.isEmpty(); });
    for (const int v : alike.vertices) {
      SceneVertex& box = vertex(v);
      if (!second)
        box.second.clear();
      else if (!whole_second)
        box.second = numbers_of(box.detail);
      if (!some)
        box.shown.clear();
      else if (!whole && !alike.closed && !numbers_of(box.title).isEmpty())
        box.shown = numbers_of(box.title);
      else if (!whole && alike.closed)
        box.shown = box.title.section(' ', 0, 0);
    }
  }

  void name_inside(int v) {
    const SceneVertex& box = vertex(v);
    if (box.shown.isEmpty()) return;
    const QPointF centre = box.box.center(), half(0, metrics_.height() / 2);
    if (box.second.isEmpty()) {
      add_if_free(SceneLabel::Kind::name, around(centre, size_of(box.shown)), box.shown, v);
    } else if (add_if_free(SceneLabel::Kind::name, around(centre - half, size_of(box.shown)), box.shown, v)) {
      add_if_free(SceneLabel::Kind::detail, around(centre + half + QPointF(0, 0.01), size_of(box.second)),
                  box.second, v);
    }
  }

  // Writes the names, or else the numbers, of boxes without room for them beside the box, outwards from the
  // centre: of a group those of its members.
  void name_beside(const Alike& alike) {
    const QPointF centre = scene_.graph.center();
    const auto place_of = [&](int v, const QString& text) {
      const QRectF box = sheets_of(vertex(v));
      const QSizeF size = size_of(text);
      QPointF out = box.center() - centre;
      out /= std::max(1e-6, std::hypot(out.x(), out.y()));
      // Move it outwards until the text touches the box from outside.
      const double away = std::min((box.width() + size.width()) / 2 / std::max(1e-6, std::abs(out.x())),
                                   (box.height() + size.height()) / 2 / std::max(1e-6, std::abs(out.y())));
      return around(box.center() + out * (away + 1), size);
    };
    const SceneVertex& first = vertex(alike.vertices.front());
    if (!(alike.closed ? first.second : first.shown).isEmpty()) return;
    const auto name_of = [&](int v) { return alike.closed ? vertex(v).detail : vertex(v).title; };
    Rectangles own;
    const bool all = std::all_of(alike.vertices.begin(), alike.vertices.end(), [&](int v) {
      const QRectF place = place_of(v, name_of(v));
      const bool free = is_free(place, v) && !own.hits(place);
      own.add(place, v);
      return free;
    });
    std::vector<int> by_number = alike.vertices;
    std::sort(by_number.begin(), by_number.end());
    for (const int v : by_number) {
      const QString title = name_of(v), number = numbers_of(title);
      // The first box gets its full name, which says what the numbers count.
      const bool whole = all || v == by_number.front() || number.isEmpty();
      if (whole && add_if_free(SceneLabel::Kind::beside, place_of(v, title), title, v)) continue;
      if (!number.isEmpty() && !all) add_if_free(SceneLabel::Kind::beside, place_of(v, number), number, v);
    }
  }

  // Writes what the numbers in the boxes count at the leftmost of them; for groups, if there is room, with
  // the numbers of all their members: "nodes 0-1023".
  void name_noun(const Alike& alike) {
    const int v = alike.vertices.front();
    const SceneVertex& box = vertex(v);
    if (box.shown == box.title) return;
    const QString noun = alike.closed ? box.title.section(' ', 1) : stem_of(box.title).section('.', -1);
    QStringList texts = {noun};
    const QString from = first_name(v), to = last_name(alike.vertices.back());
    if (alike.closed && stem_of(from) == stem_of(to) && from != to)
      texts.prepend(QString("%1 %2-%3").arg(noun, numbers_of(from), numbers_of(to)));
    for (const QString& text : texts) {
      const QSizeF size = size_of(text);
      const QRectF above(QPointF(box.box.left(), sheets_of(box).top() - size.height() - 1), size),
          below(QPointF(box.box.left(), box.box.bottom() + 1), size);
      for (const QRectF& place : alike.is_switch ? std::array{above, below} : std::array{below, above})
        if (add_if_free(SceneLabel::Kind::noun, place, text, v)) return;
    }
  }

  // The names of the first and the last place that a box stands for.
  QString first_name(int v) {
    return QString::fromStdString(topology_.places()[shown_.vertices[vertex(v).vertex].place].name);
  }
  QString last_name(int v) {
    return QString::fromStdString(topology_.places()[shown_.vertices[vertex(v).vertex].last_place].name);
  }

  // Names boxes without room for names together: those of each unit, or else all that stand side by side.
  void name_ranges(const Alike& alike) {
    std::vector<std::vector<int>> units;
    for (const int v : alike.vertices) {
      const int unit = shown_.vertices[vertex(v).vertex].unit;
      if (units.empty() || shown_.vertices[vertex(units.back().back()).vertex].unit != unit)
        units.emplace_back();
      units.back().push_back(v);
    }
    if (alike.closed || units.size() == 1) units = {alike.vertices};
    std::vector<SceneLabel> placed;
    for (const auto& unit : units) {
      const SceneLabel label = range_label(unit, units.size() > 1, placed);
      if (label.text.isEmpty()) {
        placed = {range_label(alike.vertices, false, {})};
        break;
      }
      placed.push_back(label);
    }
    for (const SceneLabel& label : placed)
      if (!label.text.isEmpty()) add(label.kind, label.box, label.text, label.vertex);
  }

  SceneLabel range_label(const std::vector<int>& vertices, bool narrow,
                         const std::vector<SceneLabel>& placed) {
    const int v = vertices.front();
    int members = 0;
    for (const int one : vertices) members += shown_.vertices[vertex(one).vertex].members;
    const QString from = first_name(v), to = last_name(vertices.back());
    QStringList texts = {from};
    if (members > 1) texts = {QString("%1 ... %2 (%3)").arg(from, to).arg(members)};
    if (members > 1 && stem_of(from) == stem_of(to))
      texts << from + "-" + numbers_of(to) << numbers_of(from) + "-" + numbers_of(to);
    const QRectF all = vertex(v).box.united(vertex(vertices.back()).box);
    for (const QString& text : texts) {
      const QSizeF size = size_of(text);
      if (narrow && size.width() > all.width() + 6) continue;
      double left = all.center().x() - size.width() / 2;
      left = std::clamp(left, scene_.graph.left(),
                        std::max(scene_.graph.left(), scene_.graph.right() - size.width()));
      const QRectF above(QPointF(left, all.top() - size.height() - kSheet - 1), size),
          below(QPointF(left, all.bottom() + 1), size);
      for (const QRectF& place : vertex(v).is_switch ? std::array{above, below} : std::array{below, above}) {
        const bool taken = std::any_of(placed.begin(), placed.end(),
                                       [&](const SceneLabel& other) { return other.box.intersects(place); });
        if (!taken && is_free(place, v)) return {SceneLabel::Kind::range, place, text, v};
      }
    }
    return {};
  }

  TopologyScene& scene_;
  const Topology& topology_;
  const ShownGraph& shown_;
  bool tiers_;
  const QFontMetricsF& metrics_;
  Rectangles boxes_, labels_, frames_;
};

}  // namespace

void place_labels(TopologyScene& scene, const Topology& topology, const ShownGraph& shown, bool tiers,
                  const QFontMetricsF& metrics) {
  Namer(scene, topology, shown, tiers, metrics).place();
}

std::vector<LinkLabel> place_link_names(const TopologyScene& scene, const std::vector<LinkLabel>& wanted,
                                        std::size_t most, const QFontMetricsF& metrics) {
  Rectangles taken;
  constexpr double kGap = 2;  // pixels around each name
  const auto with_gap = [](const QRectF& rect) { return rect.adjusted(-kGap, -kGap, kGap, kGap); };
  for (const SceneVertex& vertex : scene.vertices) taken.add(with_gap(vertex.box), -1);
  for (const SceneLabel& label : scene.labels) taken.add(label.box, -1);
  std::vector<LinkLabel> placed;
  for (LinkLabel label : wanted) {
    if (placed.size() >= most) break;
    const SceneEdge& edge = scene.edges[static_cast<std::size_t>(label.edge)];
    const QSizeF size(metrics.horizontalAdvance(label.text) + 12, metrics.height() + 4);
    QRectF bounds = scene.graph;
    for (std::size_t i = 0; i < scene.frames.size(); ++i)
      if (scene.frame_nodes[i] == edge.node) bounds = scene.frames[i];
    bounds.adjust(2, 2, -2, -2);
    // Try places on the line, then beside it.
    const QPointF along = edge.b - edge.a;
    const QPointF across = QPointF(-along.y(), along.x()) / std::max(1e-6, std::hypot(along.x(), along.y()));
    const auto place = [&](double aside, double share) {
      const QPointF on = edge.at(share), at = on + across * aside * (size.height() + 6);
      if (!bounds.contains(on) || !bounds.contains(at)) return false;
      QRectF box(at.x() - size.width() / 2, at.y() - size.height() / 2, size.width(), size.height());
      if (box.left() < bounds.left()) box.moveLeft(bounds.left());
      if (box.right() > bounds.right()) box.moveRight(bounds.right());
      if (!bounds.contains(box) || taken.hits(box)) return false;
      taken.add(with_gap(box), -1);
      label.box = box;
      label.on = on;
      label.apart = aside != 0;
      placed.push_back(label);
      return true;
    };
    bool done = false;
    for (const double aside : {0.0, 1.0, -1.0, 2.0, -2.0, 3.5, -3.5, 5.0, -5.0})
      for (const double share : {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8}) done = done || place(aside, share);
  }
  return placed;
}

}  // namespace rehearse::gui
