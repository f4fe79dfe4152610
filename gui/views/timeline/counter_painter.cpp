#include "gui/views/timeline/counter_painter.hpp"

#include <fmt/format.h>

#include "gui/models/memory/memory_stages.hpp"
#include "gui/models/topology/link_users.hpp"
#include "gui/models/tracks/span_details.hpp"
#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

// Returns the counter's value at `time`; nullopt before its first sample.
std::optional<double> value_at(const Counter& counter, Time time) {
  const auto at = std::upper_bound(counter.time.begin(), counter.time.end(), time) - counter.time.begin();
  if (at == 0) return std::nullopt;
  return counter.value[static_cast<std::size_t>(at - 1)];
}

const Counter* counter_of(const Run& run, const Line& line) {
  if (!run.timeline || line.counter < 0 || line.counter >= static_cast<int>(run.timeline->counters.size()))
    return nullptr;
  return &run.timeline->counters[static_cast<std::size_t>(line.counter)];
}

// Share of the capacity; below it, the axis ends at the greatest value instead of the capacity.
constexpr double kUsed = 0.2;

}  // namespace

double top_of_counter(double greatest, double capacity) {
  return capacity > 0 && greatest >= kUsed * capacity ? std::max(greatest, capacity) : greatest;
}

QString scale_text(const Counter& counter, double greatest, double capacity) {
  if (capacity <= 0) return counter_text(counter, greatest);
  if (top_of_counter(greatest, capacity) == capacity) return counter_text(counter, capacity);
  return counter_text(counter, greatest) + ", " + QString::fromStdString(share_text(greatest / capacity)) +
         " of " + counter_text(counter, capacity);
}

QString counter_text(const Counter& counter, double value) {
  if (counter.unit == "bytes") return QString::fromStdString(memory_text(value));
  if (counter.unit == "bytes_per_s") return QString::fromStdString(amount_text(value, "B/s"));
  if (counter.unit == "%") return QString::fromStdString(fmt::format("{:.0f} %", value));
  return QString::fromStdString(amount_text(value, counter.unit));
}

void paint_counter(QPainter& painter, const TimelineScene& scene, const Line& line, QRect rect,
                   const QPalette& palette) {
  const auto run = scene.session().run(line.run);
  const Counter* counter = run ? counter_of(*run, line) : nullptr;
  const Mipmaps* made = scene.mipmaps(line.run);
  if (!counter || !made || counter->time.empty()) return;
  const double greatest = made->greatest[static_cast<std::size_t>(line.counter)];
  const double capacity = run->capacity_of(static_cast<std::size_t>(line.counter));
  const double top = top_of_counter(greatest, capacity);
  const TimeScale scale = scene.scale_of(*run);
  const QRect inside = rect.adjusted(0, 4, 0, -3);
  const auto y_of = [&](double value) {
    return inside.bottom() + 1 - (top > 0 ? value / top : 0) * inside.height();
  };
  const QColor colour = colour_of_run(2, is_dark(palette));
  QColor fill = colour;
  fill.setAlpha(50);
  // Draw each pixel from the least to the greatest value in it.
  const double ns = 1 / scale.pixels_per_ns();
  const auto begin = counter->time.begin(), end = counter->time.end();
  auto at = std::upper_bound(begin, end, scale.range.begin);
  double last = at == begin ? 0 : counter->value[static_cast<std::size_t>(at - begin - 1)];
  bool known = at != begin;
  QVector<QLineF> lines;
  QVector<QRectF> fills;
  double flat_from = 0;
  const auto flat_to = [&](double x) {
    if (!known || x <= flat_from) return;
    lines.push_back({flat_from, y_of(last), x, y_of(last)});
    fills.push_back({flat_from, y_of(last), x - flat_from, inside.bottom() + 1 - y_of(last)});
  };
  for (int x = 0; x < rect.width() && at != end; ++x) {
    const Time until = scale.range.begin + static_cast<Time>(std::llround((x + 1) * ns));
    if (*at >= until) {
      x = std::max(x, static_cast<int>(scale.x(*at)) - 1);
      continue;
    }
    flat_to(x);
    flat_from = x;
    double least = known ? last : counter->value[static_cast<std::size_t>(at - begin)], most = least;
    const auto next = std::lower_bound(at, end, until);
    for (; at != next; ++at) {
      last = counter->value[static_cast<std::size_t>(at - begin)];
      least = std::min(least, last);
      most = std::max(most, last);
    }
    known = true;
    lines.push_back({static_cast<double>(x), y_of(least), static_cast<double>(x), y_of(most)});
  }
  flat_to(std::min<double>(rect.width(), scale.x(run->timeline->end)));
  painter.setPen(Qt::NoPen);
  for (const QRectF& f : fills) painter.fillRect(f, fill);
  painter.setPen(QPen(colour, 1));
  painter.drawLines(lines);
  if (capacity > 0 && capacity <= top) {
    const QColor marked =
        greatest > capacity ? critical_colour(is_dark(palette)) : palette.color(QPalette::Text);
    painter.setPen(QPen(marked, 1, Qt::DashLine));
    painter.drawLine(QPointF(0, y_of(capacity) - 0.5), QPointF(rect.width(), y_of(capacity) - 0.5));
  }
  // Label the top of the scale.
  QFont small = painter.font();
  const QFont usual = small;
  small.setPointSizeF(std::max(6.5, small.pointSizeF() * 0.85));
  painter.setFont(small);
  const QString text = scale_text(*counter, greatest, capacity);
  const QRect box(3, rect.y() + 3, painter.fontMetrics().horizontalAdvance(text) + 6,
                  painter.fontMetrics().height());
  QColor ground = palette.color(QPalette::Base), ink = palette.color(QPalette::Text);
  ground.setAlpha(190);
  ink.setAlpha(190);
  painter.fillRect(box, ground);
  painter.setPen(ink);
  painter.drawText(box, Qt::AlignCenter, text);
  painter.setFont(usual);
}

void paint_counter_values(QPainter& painter, const TimelineScene& scene, const QPalette& palette) {
  const auto cursor = scene.state().cursor();
  if (!cursor) return;
  const auto& lines = scene.lines();
  const QFontMetrics metrics = painter.fontMetrics();
  for (std::size_t i = first_line_at(lines, scene.scroll());
       i < lines.size() && lines[i].y < scene.scroll() + scene.canvas().height(); ++i) {
    if (lines[i].type != Line::Type::counter) continue;
    const auto run = scene.session().run(lines[i].run);
    const Counter* counter = run ? counter_of(*run, lines[i]) : nullptr;
    const auto value = counter ? value_at(*counter, *cursor + run->aligned) : std::nullopt;
    if (!value) continue;
    QString text = counter_text(*counter, *value);
    if (const double capacity = run->capacity_of(static_cast<std::size_t>(lines[i].counter)); capacity > 0)
      text += ", " + QString::fromStdString(share_text(*value / capacity));
    const int width = metrics.horizontalAdvance(text) + 8;
    double x = scene.scale().x(*cursor) + 4;
    if (x + width > scene.canvas().width()) x -= width + 8;
    const QRectF box(x, lines[i].y - scene.scroll() + 3, width, metrics.height());
    QColor ground = palette.color(QPalette::ToolTipBase);
    ground.setAlpha(230);
    painter.fillRect(box, ground);
    painter.setPen(palette.color(QPalette::ToolTipText));
    painter.drawText(box, Qt::AlignCenter, text);
  }
}

}  // namespace rehearse::gui
