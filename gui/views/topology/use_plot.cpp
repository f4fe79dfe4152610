#include "gui/views/topology/use_plot.hpp"

#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/models/topology/link_users.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/topology/topology_canvas.hpp"

namespace rehearse::gui {

namespace {

constexpr double kAbove = 1.12;  // upper end of the axis, which leaves room above the line of the capacity

// Returns the upper end of the axis: above the capacity, or a round share above a low maximum.
double top_of(const std::vector<double>& use) {
  const double most = use.empty() ? 1 : *std::max_element(use.begin(), use.end());
  for (const double top : {0.01, 0.02, 0.05, 0.1, 0.2})
    if (most <= top) return top;
  return kAbove;
}

}  // namespace

UsePlot::UsePlot(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName("Use of the link over the visible time");
}

QRectF UsePlot::plot() const {
  const QFontMetricsF metrics(font());
  return QRectF(rect()).adjusted(metrics.horizontalAdvance("100 %") + 8, 5, -8, -metrics.height() - 4);
}

void UsePlot::set_use(std::vector<double> use, TimeRange range) {
  use_ = std::move(use);
  range_ = range;
  update();
}

void UsePlot::set_capacity(double bytes_per_s) {
  capacity_ = bytes_per_s;
  update();
}

void UsePlot::set_cursor_time(std::optional<Time> time) {
  cursor_ = time;
  update();
}

void UsePlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QRectF area = plot();
  const QFontMetricsF metrics(font());
  painter.fillRect(area, palette().color(QPalette::Base));
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawRect(area);
  const double top = top_of(use_);
  painter.setPen(palette().color(QPalette::Text));
  // Label 100 %, or the upper end of a shorter axis.
  const double marked = std::min(1.0, top), mark_y = area.bottom() - marked / top * (area.height() - 1);
  const QRectF left(0, mark_y - metrics.height() / 2, area.left() - 5, metrics.height());
  painter.drawText(QRectF(left).translated(0, std::max(0.0, -left.top())), Qt::AlignRight | Qt::AlignVCenter,
                   QString::fromStdString(share_text(marked)));
  painter.drawText(QRectF(0, area.bottom() - metrics.height() + 2, area.left() - 5, metrics.height()),
                   Qt::AlignRight | Qt::AlignVCenter, "0");
  double right = area.left() - 100;
  for (const Tick& tick : ticks(scale(), 110)) {
    const double x = scale().x(tick.time);
    const QString text = QString::fromStdString(tick.text);
    const double half = metrics.horizontalAdvance(text) / 2;
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 3));
    if (x - half < std::max(area.left() - 20, right) || x + half > width()) continue;
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(x - half, area.bottom() + 3, 2 * half + 2, metrics.height()), Qt::AlignLeft,
                     text);
    right = x + half + 8;
  }
  const bool dark = is_dark(palette());
  const double each = area.width() / static_cast<double>(std::max<std::size_t>(1, use_.size()));
  for (std::size_t i = 0; i < use_.size(); ++i) {
    if (!(use_[i] > 0)) continue;
    const double height = std::min(1.0, use_[i] / top) * (area.height() - 1);
    painter.fillRect(
        QRectF(area.left() + each * static_cast<double>(i), area.bottom() - height, std::ceil(each), height),
        colour_of_use(shade_of_use(use_[i]), dark));
  }
  if (capacity_ > 0) {
    const bool reached = top > 1;
    const QString text = reached ? QString("capacity %1").arg(QString::fromStdString(rate_text(capacity_)))
                                 : QString("%1 of the capacity, %2")
                                       .arg(QString::fromStdString(share_text(top)),
                                            QString::fromStdString(rate_text(capacity_)));
    painter.setPen(QPen(palette().color(QPalette::Text), 1, Qt::DashLine));
    if (reached) painter.drawLine(QPointF(area.left(), mark_y), QPointF(area.right(), mark_y));
    const double width = metrics.horizontalAdvance(text) + 6;
    const QRectF plate(area.right() - width - 2, mark_y + 2, width, metrics.height());
    QColor ground = palette().color(QPalette::Base);
    ground.setAlpha(190);
    painter.fillRect(plate, ground);
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(plate, Qt::AlignCenter, text);
  }
  if (cursor_ && range_.contains(*cursor_)) {
    painter.setPen(QPen(palette().color(QPalette::Text), 1, Qt::DashLine));
    const double x = scale().x(*cursor_);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
}

void UsePlot::resizeEvent(QResizeEvent*) {
  emit resized();
}

void UsePlot::mouseMoveEvent(QMouseEvent* event) {
  const QRectF area = plot();
  if (use_.empty() || !area.contains(event->position())) return emit hovered({});
  const auto bin =
      std::min(use_.size() - 1, static_cast<std::size_t>((event->position().x() - area.left()) /
                                                         area.width() * static_cast<double>(use_.size())));
  const Time time = scale().time(event->position().x());
  emit hovered(time);
  QToolTip::showText(event->globalPosition().toPoint(),
                     QString::fromStdString(duration_text(time) + ": " + share_text(use_[bin]) + " used" +
                                            (capacity_ > 0 ? ", " + rate_text(use_[bin] * capacity_) : "")),
                     this);
}

void UsePlot::leaveEvent(QEvent*) {
  emit hovered({});
}

}  // namespace rehearse::gui
