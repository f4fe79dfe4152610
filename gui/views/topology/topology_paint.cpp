// Paints the canvas of a topology.
#include <QPaintEngine>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "gui/models/topology/link_users.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/topology/topology_canvas.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t kNamed = 6;  // links whose names are drawn
// Pixels per direction; thinner lines are drawn as one, coloured by the busier direction.
constexpr double kLeastApart = 1.2;

QColor mixed(const QColor& a, const QColor& b, double share) {
  return QColor::fromRgbF(static_cast<float>(a.redF() + (b.redF() - a.redF()) * share),
                          static_cast<float>(a.greenF() + (b.greenF() - a.greenF()) * share),
                          static_cast<float>(a.blueF() + (b.blueF() - a.blueF()) * share));
}

}  // namespace

QColor TopologyCanvas::colour(double use) const {
  const bool dark = is_dark(palette());
  if (use > 0) return colour_of_use(shade_of_use(use), dark);
  return mixed(palette().color(QPalette::Base), colour_of_use(0, dark), 0.75);
}

void TopologyCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (!topology_) {
    painter.fillRect(rect(), palette().color(QPalette::Base));
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(20, 10, -20, -10), Qt::AlignCenter | Qt::TextWordWrap, message);
    return;
  }
  if (painter.paintEngine()->type() != QPaintEngine::Raster) {  // a vector format, so no cached pixels
    paint_picture(painter);
  } else {
    const double ratio = painter.device()->devicePixelRatioF();
    const QSize wanted = (QSizeF(size()) * ratio).toSize();
    if (picture_old_ || picture_.size() != wanted) {
      if (picture_.size() != wanted) picture_ = QImage(wanted, QImage::Format_RGB32);
      picture_.setDevicePixelRatio(ratio);
      QPainter on_picture(&picture_);
      on_picture.setFont(font());
      paint_picture(on_picture);
      picture_old_ = false;
    }
    painter.drawImage(0, 0, picture_);
  }
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

void TopologyCanvas::paint_picture(QPainter& painter) const {
  painter.fillRect(rect(), palette().color(QPalette::Base));
  painter.setRenderHint(QPainter::Antialiasing);
  for (std::size_t i = 0; i < scene_.frames.size(); ++i) {
    const QRectF& frame = scene_.frames[i];
    painter.setPen(QPen(palette().color(QPalette::Mid), 1));
    painter.setBrush(palette().color(QPalette::AlternateBase));
    painter.drawRoundedRect(frame, 6, 6);
  }
  paint_edges(painter);
  paint_vertices(painter);
  paint_labels(painter);
  paint_names(painter);
  paint_legend(painter);
}

void TopologyCanvas::paint_edges(QPainter& painter) const {
  // Paint the busiest links last, on top of the others, and marked links on top of all.
  const int selected = selected_ ? edge_with(*selected_) : -1;
  const auto is_marked = [&](int e) { return e == selected || uses_[e].highlighted; };
  std::vector<int> order(scene_.edges.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int>(e);
  const auto rank = [&](int e) { return std::max(uses_[e].there, uses_[e].back); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(is_marked(a), rank(a)) < std::pair(is_marked(b), rank(b));
  });
  const QRectF graph = scene_.graph.adjusted(-4, -4, 4, 4);
  for (const bool inside : {false, true}) {
    painter.setClipRect(inside ? QRectF(rect()) : graph);
    painter.setBrush(Qt::NoBrush);
    for (const int e : order) {
      const SceneEdge& edge = scene_.edges[e];
      if ((edge.node >= 0) != inside) continue;
      if (is_marked(e)) {
        QColor halo = palette().color(QPalette::Highlight);
        halo.setAlpha(e == selected ? 200 : 110);
        painter.setPen(QPen(halo, 2 * edge.width + 6, Qt::SolidLine, Qt::RoundCap));
        painter.drawPath(edge.path(0));
      }
      const auto stroke = [&](double aside, double width, const QColor& colour) {
        painter.setPen(QPen(colour, width, Qt::SolidLine, Qt::FlatCap));
        painter.drawPath(edge.path(aside));
      };
      const Use& use = uses_[e];
      if (edge.there.empty()) {
        stroke(0, 1, palette().color(QPalette::Mid));
      } else if (edge.width < kLeastApart) {
        stroke(0, std::max(1.0, 1.3 * edge.width), colour(rank(e)));
      } else {
        stroke(edge.width / 2 + 0.3, edge.width, colour(use.there));
        stroke(-edge.width / 2 - 0.3, edge.width, colour(use.back));
      }
    }
  }
}

void TopologyCanvas::paint_vertices(QPainter& painter) const {
  const QColor ground = palette().color(QPalette::Button);
  const QRectF graph = scene_.graph.adjusted(-4, -4, 4, 4);
  for (const SceneVertex& vertex : scene_.vertices) {
    painter.setClipRect(vertex.node >= 0 ? QRectF(rect()) : graph);
    const double radius = std::min(vertex.is_switch ? 2.0 : 5.0, vertex.box.height() / 3);
    const int node = node_of(vertex);
    const bool marked = node >= 0 && highlighted_nodes_.count(node) > 0;
    if (vertex.vertex >= 0 && shown_.vertices[vertex.vertex].members > 1) {
      // Draw a second sheet behind a vertex that represents several.
      painter.setPen(QPen(palette().color(QPalette::Dark), 1));
      painter.setBrush(ground);
      painter.drawRoundedRect(vertex.box.translated(kSheet, -kSheet), radius, radius);
    }
    painter.setPen(marked ? QPen(palette().color(QPalette::Highlight), 2.5)
                          : QPen(palette().color(QPalette::Dark), 1));
    if (is_dark(palette()) && !marked) painter.setPen(QPen(palette().color(QPalette::Mid).lighter(150), 1));
    const bool open = node >= 0 && vertex.node < 0 &&
                      std::any_of(open_nodes_.begin(), open_nodes_.end(),
                                  [&](const OpenNode& one) { return one.node == node; });
    QPen outline = open && !marked ? QPen(palette().color(QPalette::Text), 1.8) : painter.pen();
    if (vertex.idle) outline.setStyle(Qt::DotLine);
    painter.setPen(outline);
    painter.setBrush(vertex.is_switch ? mixed(ground, palette().color(QPalette::Highlight), 0.16)
                     : vertex.idle    ? palette().color(QPalette::Base)
                                      : ground);
    painter.drawRoundedRect(vertex.box, radius, radius);
    if (node >= 0 && node < static_cast<int>(inside_use_.size()) && inside_use_[node] > 0 &&
        vertex.box.height() > 9) {
      // Show how busy the node's inner links are.
      const QRectF bar(vertex.box.left() + 3, vertex.box.bottom() - 4, vertex.box.width() - 6, 2.5);
      painter.fillRect(bar, colour(inside_use_[node]));
    }
  }
  painter.setClipping(false);
}

void TopologyCanvas::paint_labels(QPainter& painter) const {
  const QColor text = palette().color(QPalette::ButtonText), ground = palette().color(QPalette::Button);
  QColor plate = palette().color(QPalette::Base);
  plate.setAlpha(200);
  QFont bold = font();
  bold.setBold(true);
  for (const SceneLabel& label : scene_.labels) {
    const SceneVertex* vertex = label.vertex >= 0 ? &scene_.vertices[label.vertex] : nullptr;
    switch (label.kind) {
      case SceneLabel::Kind::name:
        painter.setPen(vertex->idle ? palette().color(QPalette::PlaceholderText) : text);
        break;
      case SceneLabel::Kind::detail:
        painter.setPen(mixed(text, ground, 0.35));
        break;
      case SceneLabel::Kind::noun:
      case SceneLabel::Kind::range:
        painter.fillRect(label.box, plate);  // lines can run behind it
        painter.setPen(palette().color(QPalette::PlaceholderText));
        break;
      case SceneLabel::Kind::beside:
        painter.fillRect(label.box, plate);
        painter.setPen(palette().color(vertex->is_switch ? QPalette::PlaceholderText : QPalette::Text));
        break;
      case SceneLabel::Kind::frame:
        painter.setPen(palette().color(QPalette::Text));
        painter.setFont(bold);
        break;
    }
    const bool is_title = label.kind == SceneLabel::Kind::frame;
    painter.drawText(label.box, is_title ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignCenter, label.text);
    if (is_title) painter.setFont(font());
  }
}

// Writes the names of the busiest links beside them, where there is room.
void TopologyCanvas::paint_names(QPainter& painter) const {
  std::vector<LinkUsage::Busy> busy;
  if (selected_ && usage_)
    busy.push_back({*selected_, 0, usage_->use(load_, *selected_), usage_->bytes(load_, *selected_)});
  busy.insert(busy.end(), busiest_.begin(), busiest_.end());
  std::vector<LinkLabel> wanted;
  std::map<int, double> use_of;  // by line
  for (const LinkUsage::Busy& one : busy) {
    const int e = edge_with(one.link);
    if (e < 0 || !use_of.try_emplace(e, one.use).second) continue;
    wanted.push_back(
        {e, QString::fromStdString(topology_->cluster().link_name(one.link) + "  " + share_text(one.use))});
  }
  for (const LinkLabel& label : place_link_names(scene_, wanted, kNamed, QFontMetricsF(font()))) {
    QColor ground = palette().color(QPalette::ToolTipBase);
    ground.setAlpha(235);
    painter.setPen(QPen(colour(use_of[label.edge]), 1.4));
    if (label.apart) painter.drawLine(label.on, label.box.center());
    painter.setBrush(ground);
    painter.drawRoundedRect(label.box, 4, 4);
    painter.setPen(palette().color(QPalette::ToolTipText));
    painter.drawText(label.box, Qt::AlignCenter, label.text);
  }
}

void TopologyCanvas::paint_legend(QPainter& painter) const {
  const QFontMetricsF metrics(font());
  const double top = height() - 24, bar_width = std::min(190.0, width() * 0.3);
  double x = 12;
  painter.setPen(palette().color(QPalette::Text));
  const auto write = [&](const QString& text, double gap) {
    painter.drawText(QPointF(x, top + 15), text);
    x += metrics.horizontalAdvance(text) + gap;
  };
  write("Use", 8);
  const QRectF bar(x, top + 2, bar_width, 7);
  for (int i = 0; i < static_cast<int>(bar.width()); ++i)
    painter.fillRect(QRectF(bar.left() + i, bar.top(), 1.5, bar.height()),
                     colour_of_use(i / bar.width(), is_dark(palette())));
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.82);
  painter.setFont(small);
  for (const double mark : {0.0, 0.1, 0.25, 0.5, 1.0}) {
    const double at = bar.left() + bar.width() * shade_of_use(mark);
    painter.drawLine(QPointF(at, bar.bottom()), QPointF(at, bar.bottom() + 2));
    const QString text = mark == 1 ? "100 %" : QString::number(100 * mark);
    painter.drawText(QRectF(at - 30, bar.bottom() + 1, 60, 12), Qt::AlignHCenter | Qt::AlignTop, text);
  }
  painter.setFont(font());
  x = bar.right() + 34;
  if (scene_.most_capacity <= 0) return;
  const QString least = QString::fromStdString(rate_text(scene_.least_capacity));
  const QString most = QString::fromStdString(rate_text(scene_.most_capacity));
  const auto sample = [&](double line, const QString& text) {
    if (x + 40 + metrics.horizontalAdvance(text) > width() - 10) return;
    painter.fillRect(QRectF(x, top + 10 - line, 24, 2 * line),
                     palette().color(QPalette::Dark).lighter(is_dark(palette()) ? 500 : 100));
    x += 30;
    write(text, 18);
  };
  const bool one = scene_.most_capacity <= scene_.least_capacity * 1.001;
  if (!one) sample(0.8, least);
  sample(one ? 1.4 : 2, most);
}

}  // namespace rehearse::gui
