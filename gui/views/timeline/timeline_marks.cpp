#include "gui/views/timeline/timeline_marks.hpp"

#include <QPainterPath>

#include "gui/models/timeline/arrow_times.hpp"
#include "gui/models/tracks/span_details.hpp"
#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t kMostSegments = 20'000;  // spans of the critical path that are examined
constexpr qsizetype kMostJoints = 1500;        // connecting lines; more would cover the tracks
constexpr int kLowMark = 10;

void paint_arrow(QPainter& painter, QPointF a, QPointF b, bool dashed, const QColor& colour,
                 const QColor& halo) {
  // Use a straight line if a curve would run backwards.
  const double bend = std::min((b.x() - a.x()) / 2, 80.0);
  const bool straight = bend < 10;
  QPainterPath path(a);
  if (straight)
    path.lineTo(b);
  else
    path.cubicTo(a + QPointF(bend, 0), b - QPointF(bend, 0), b);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(halo, 4));
  painter.drawPath(path);
  QPen pen(colour, 1.6);
  if (dashed) pen.setDashPattern({4, 3});
  painter.setPen(pen);
  painter.drawPath(path);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  const double length = std::hypot(b.x() - a.x(), b.y() - a.y());
  const QPointF along = straight && length > 0 ? (b - a) / length : QPointF(1, 0);
  const QPointF across(-along.y(), along.x());
  painter.drawPolygon(QPolygonF({b, b - 7 * along - 3.6 * across, b - 7 * along + 3.6 * across}));
}

}  // namespace

void paint_links(QPainter& painter, const TimelineScene& scene, const QPalette& palette) {
  const auto& selected = scene.state().selected();
  if (!selected || !scene.knows(*selected)) return;
  const auto run = scene.session().run(selected->run);
  const QRectF own = scene.rect_of(*selected);
  if (own.isNull()) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const QColor colour = palette.color(QPalette::Text);
  QColor halo = palette.color(QPalette::Base);
  halo.setAlpha(190);
  if (scene.state().shows_flows()) {
    for (const SpanLink& link : links_of(*run->timeline, selected->span)) {
      using Type = SpanLink::Type;
      const bool flow = link.type == Type::sender || link.type == Type::receiver;
      if (!flow && link.type != Type::dependency && link.type != Type::dependent) continue;
      const QRectF other = scene.rect_of({selected->run, link.span});
      if (other.isNull()) continue;
      const bool into = link.type == Type::sender || link.type == Type::dependency;
      const ArrowTimes times = into ? arrow_times(*run->timeline, link.span, selected->span)
                                    : arrow_times(*run->timeline, selected->span, link.span);
      const TimeScale scale = scene.scale_of(*run);
      const auto end = [&](Time time, const QRectF& rect) {
        return QPointF(std::clamp(scale.x(time), -1e6, 1e6), rect.center().y());
      };
      paint_arrow(painter, end(times.leaves, into ? other : own), end(times.arrives, into ? own : other),
                  !flow, colour, halo);
    }
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  const QRectF box = own.height() < kLowMark ? own.adjusted(-1, -1, 0, 0) : own.adjusted(-1, 1, 0, -2);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(palette.color(QPalette::Base), 4));
  painter.drawRect(box);
  painter.setPen(QPen(colour, 2));
  painter.drawRect(box);
  painter.restore();
}

void paint_critical_path(QPainter& painter, const TimelineScene& scene, const QPalette& palette) {
  if (!scene.state().shows_critical_path()) return;
  painter.save();
  const QColor colour = critical_colour(is_dark(palette));
  const double width = scene.canvas().width(), height = scene.canvas().height();
  for (const auto& run : scene.session().shown()) {
    const Mipmaps* made = scene.mipmaps(run->id);
    if (!made || made->critical.empty()) continue;
    const SpanColumns& spans = run->timeline->spans;
    const TimeScale scale = scene.scale_of(*run);
    // Build lookup tables from rows and processes to lines.
    std::vector<int> line_of(run->timeline->rows.size(), -1), header_of(run->timeline->processes.size(), -1);
    for (std::size_t i = 0; i < scene.lines().size(); ++i) {
      const Line& line = scene.lines()[i];
      if (line.run != run->id) continue;
      if (line.type == Line::Type::row) line_of[static_cast<std::size_t>(line.row)] = static_cast<int>(i);
      if (line.type == Line::Type::process)
        header_of[static_cast<std::size_t>(line.process)] = static_cast<int>(i);
      if (line.type == Line::Type::group && line.collapsed)
        for (const int process : line.group->processes)
          header_of[static_cast<std::size_t>(process)] = static_cast<int>(i);
    }
    const auto& critical = made->critical;
    auto at = std::partition_point(critical.begin(), critical.end(),
                                   [&](SpanId s) { return spans.begin[s] < scale.range.begin; });
    // Include spans that began earlier and are still running at the left edge.
    at -= std::min<std::ptrdiff_t>(64, at - critical.begin());
    QVector<QLineF> joints;
    const auto clip = [&](double x) { return std::clamp(x, -2000.0, width + 2000); };
    double last_x = 0, last_y = 0;
    bool any = false;
    QVector<QRectF> boxes;
    for (std::size_t n = 0; at != critical.end() && n < kMostSegments; ++at, ++n) {
      const double left = scale.x(spans.begin[*at]), right = scale.x(spans.end[*at]);
      const int row = run->timeline->row_of(*at);
      int place = line_of[static_cast<std::size_t>(row)];
      if (place < 0)
        place =
            header_of[static_cast<std::size_t>(run->timeline->rows[static_cast<std::size_t>(row)].process)];
      if (place < 0) continue;
      const Line& where = scene.lines()[static_cast<std::size_t>(place)];
      const double y = where.y - scene.scroll() + where.height / 2.0;
      if (left > width + 1000) break;
      // Connect the end of a span with the begin of the next one unless they touch in the same row.
      const bool seen = std::max(y, last_y) > -50 && std::min(y, last_y) < height + 50 &&
                        std::max(left, last_x) > -50 && joints.size() < kMostJoints;
      if (any && seen && (std::abs(y - last_y) > 0.5 || left > last_x + 2))
        joints << QLineF(clip(last_x), last_y, clip(left), y);
      any = true;
      last_x = right;
      last_y = y;
      if (where.height < kLowMark) {  // too low for a box
        if (seen) joints << QLineF(clip(left), y, clip(right), y);
      } else if (right - left >= 3 && right > 0 && left < width && y > -50 && y < height + 50)
        boxes << QRectF(std::max(left, -10.0), where.y - scene.scroll() + 1.5,
                        std::min(right, width + 10) - std::max(left, -10.0) - 1.5, where.height - 4);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colour, 1.6));
    painter.drawRects(boxes);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colour, 1.4));
    painter.drawLines(joints);
    painter.setRenderHint(QPainter::Antialiasing, false);
  }
  painter.restore();
}

void paint_bookmarks(QPainter& painter, const TimelineScene& scene, const QPalette& palette) {
  const TimeScale scale = scene.scale();
  const int height = scene.canvas().height();
  QColor colour = palette.color(QPalette::Highlight);
  for (const Bookmark& bookmark : scene.state().bookmarks()) {
    const double left = scale.x(bookmark.range.begin), right = scale.x(bookmark.range.end);
    if (right < 0 || left > scale.width) continue;
    if (bookmark.range.length() > 0) {
      QColor fill = colour;
      fill.setAlpha(28);
      painter.fillRect(QRectF(left, 0, right - left, height), fill);
    }
    painter.setPen(QPen(colour, 1, Qt::DashLine));
    painter.drawLine(QPointF(std::floor(left), 0), QPointF(std::floor(left), height));
    if (bookmark.range.length() > 0)
      painter.drawLine(QPointF(std::floor(right), 0), QPointF(std::floor(right), height));
  }
}

void paint_cursor(QPainter& painter, const TimelineScene& scene, const QPalette& palette) {
  const auto time = scene.state().cursor();
  if (!time) return;
  const double x = std::floor(scene.scale().x(*time));
  if (x < 0 || x > scene.canvas().width()) return;
  QColor colour = palette.color(QPalette::Text);
  colour.setAlpha(130);
  painter.setPen(QPen(colour, 1));
  painter.drawLine(QPointF(x, 0), QPointF(x, scene.canvas().height()));
}

}  // namespace rehearse::gui
