#include "gui/views/memory/memory_plot.hpp"

#include <fmt/format.h>

#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/views/memory/memory_bars.hpp"
#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

MemoryPlot::MemoryPlot(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName("Memory over time");
}

QRectF MemoryPlot::plot() const {
  const QFontMetricsF metrics(font());
  return QRectF(rect()).adjusted(metrics.horizontalAdvance("1000 GiB") + 10, metrics.height() * 2 + 12, -14,
                                 -2 * metrics.height() - 10);
}

void MemoryPlot::set_series(MemorySeries series, Time aligned, double capacity, const QString& title) {
  series_ = std::move(series);
  aligned_ = aligned;
  capacity_ = capacity;
  title_ = title;
  update();
}

void MemoryPlot::set_visible(TimeRange range) {
  range_ = range;
  update();
}

void MemoryPlot::set_cursor_time(std::optional<Time> time) {
  cursor_ = time;
  update();
}

double MemoryPlot::top() const {
  return 1.06 *
         std::max(1.0, series_.most < 0.08 * capacity_ ? series_.most : std::max(series_.most, capacity_));
}

std::size_t MemoryPlot::fullest(Time from, Time to) const {
  const std::size_t none = series_.time.size();
  std::size_t first = series_.at(from);
  const std::size_t last = series_.at(to);
  if (last == none) return none;
  if (first == none) first = 0;
  std::size_t best = none;
  double most = -1;
  for (std::size_t i = first; i <= last; ++i) {
    double total = 0;
    for (const std::vector<double>& part : series_.parts) total += part[i];
    if (total > most) {
      most = total;
      best = i;
    }
  }
  return best;
}

void MemoryPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (series_.time.empty() || range_.length() <= 0) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap, message);
    return;
  }
  const QRectF area = plot();
  const QFontMetricsF metrics(font());
  const bool dark = is_dark(palette());
  const auto y = [&](double bytes) { return area.bottom() - bytes / top() * area.height(); };
  QFont bold = font();
  bold.setBold(true);
  painter.setFont(bold);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QPointF(area.left(), 4 + metrics.ascent()),
                   QFontMetricsF(bold).elidedText(title_, Qt::ElideRight, area.width()));
  painter.setFont(font());
  for (const double mark : memory_marks(top(), area.height())) {
    QColor line = palette().color(QPalette::Mid);
    line.setAlpha(mark == 0 ? 255 : 110);
    painter.setPen(line);
    painter.drawLine(QPointF(area.left(), y(mark)), QPointF(area.right(), y(mark)));
    painter.setPen(palette().color(QPalette::Text));
    const QString text =
        mark == 0 ? QString("0") : QString::fromStdString(memory_text(mark)).replace(".0 ", " ");
    painter.drawText(QRectF(0, y(mark) - metrics.height() / 2, area.left() - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, text);
  }
  const TimeScale scale = this->scale();
  for (int x = 0; x < static_cast<int>(area.width()); ++x) {
    const Time from = scale.time(area.left() + x) + aligned_, to = scale.time(area.left() + x + 1) + aligned_;
    if (from > series_.time.back() && series_.parts[0].back() <= 0) break;
    const std::size_t i = fullest(from, std::max(from, to - 1));
    if (i >= series_.time.size()) continue;
    double below = 0;
    for (std::size_t part = 0; part < series_.parts.size(); ++part) {
      const double bytes = series_.parts[part][i];
      if (bytes > 0)
        painter.fillRect(QRectF(area.left() + x, y(below + bytes), 1, y(below) - y(below + bytes)),
                         colour_of_part(static_cast<int>(part), dark));
      below += bytes;
    }
  }
  double right = -1e9;
  for (const Tick& tick : ticks(scale, 110)) {
    const double x = scale.x(tick.time);
    const QString text = QString::fromStdString(tick.text);
    const double half = metrics.horizontalAdvance(text) / 2;
    if (x < area.left() - 0.5 || x > area.right() + 0.5) continue;
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 4));
    if (x - half < right || x + half > width()) continue;
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(x - half, area.bottom() + 7, 2 * half + 2, metrics.height()), Qt::AlignLeft,
                     text);
    right = x + half + 8;
  }
  if (capacity_ > 0 && capacity_ <= top()) {
    painter.setPen(QPen(series_.most > capacity_ ? critical_colour(dark) : palette().color(QPalette::Text),
                        1.4, Qt::DashLine));
    painter.drawLine(QPointF(area.left(), y(capacity_)), QPointF(area.right(), y(capacity_)));
  }
  if (cursor_ && range_.contains(*cursor_)) {
    painter.setPen(QPen(palette().color(QPalette::Text), 1, Qt::DashLine));
    painter.drawLine(QPointF(scale.x(*cursor_), area.top()), QPointF(scale.x(*cursor_), area.bottom()));
  }
}

void MemoryPlot::mouseMoveEvent(QMouseEvent* event) {
  if (series_.time.empty() || !plot().contains(event->position())) {
    emit hovered({});
    return;
  }
  const Time time = scale().time(event->position().x());
  emit hovered(time);
  const std::size_t i = series_.at(time + aligned_);
  if (i >= series_.time.size()) return;
  double total = 0;
  QString text = QString::fromStdString(duration_text(time));
  for (std::size_t part = 0; part < series_.parts.size(); ++part) {
    total += series_.parts[part][i];
    text += QString::fromStdString(
        fmt::format("\n{} {}", kMemoryParts[part], memory_text(series_.parts[part][i])));
  }
  text += "\ntotal " + QString::fromStdString(memory_text(total));
  QToolTip::showText(event->globalPosition().toPoint(), text, this);
}

void MemoryPlot::leaveEvent(QEvent*) {
  emit hovered({});
}

void MemoryPlot::wheelEvent(QWheelEvent* event) {
  const double notches = event->angleDelta().y() / 120.0;
  if (notches != 0 && range_.length() > 0)
    emit zoomed_by(std::pow(0.8, notches), scale().time(event->position().x()));
  event->accept();
}

}  // namespace rehearse::gui
