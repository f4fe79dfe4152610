#include "gui/views/timeline/timeline_canvas.hpp"

#include <fmt/format.h>

#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>

#include "gui/models/tracks/area_totals.hpp"
#include "gui/models/tracks/span_details.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/timeline/counter_painter.hpp"
#include "gui/views/timeline/timeline_marks.hpp"

namespace rehearse::gui {

namespace {

constexpr int kRowEdgeReach = 4;
constexpr int kThinStrip = 7;           // height in pixels of a rank's summary above its rows
constexpr int kLowRow = 8;              // pixels; lower rows have no gap above and below
constexpr int kPathTexts = -1'000'000;  // minus the run's id, the key of cached texts on the path

// Returns the part of a row that its spans fill.
QRect inside_of(QRect rect) {
  if (rect.height() >= kLowRow) return rect.adjusted(0, 1, 0, -1);
  return rect.height() > 4 ? rect.adjusted(0, 0, 0, -1) : rect;
}

QColor blended(const QColor& a, const QColor& b, double share) {
  return QColor::fromRgbF(static_cast<float>(a.redF() + (b.redF() - a.redF()) * share),
                          static_cast<float>(a.greenF() + (b.greenF() - a.greenF()) * share),
                          static_cast<float>(a.blueF() + (b.blueF() - a.blueF()) * share));
}

}  // namespace

TimelineCanvas::TimelineCanvas(TimelineScene& scene, QWidget* parent) : QWidget(parent), scene_(scene) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Tracks"));
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(120, 60);
  const auto old = [this] { repaint_tracks(); };
  const auto over = [this] { update(); };
  connect(&scene_, &TimelineScene::lines_changed, this, old);
  connect(&scene_, &TimelineScene::scrolled, this, old);
  connect(&scene_, &TimelineScene::content_changed, this, old);
  connect(&scene_, &TimelineScene::hits_changed, this, old);
  connect(&scene_.state(), &ViewState::visible_changed, this, old);
  connect(&scene_.state(), &ViewState::marks_changed, this, old);
  connect(&scene_.state(), &ViewState::selection_changed, this, over);
  connect(&scene_.state(), &ViewState::cursor_changed, this, over);
}

void TimelineCanvas::repaint_tracks() {
  tracks_old_ = true;
  update();
}

void TimelineCanvas::resizeEvent(QResizeEvent*) {
  scene_.set_canvas(size());
  repaint_tracks();
}

void TimelineCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) repaint_tracks();
  QWidget::changeEvent(event);
}

// ----- painting

void TimelineCanvas::paintEvent(QPaintEvent*) {
  const double ratio = devicePixelRatioF();
  const QSize wanted = size() * ratio;
  if (tracks_old_ || tracks_.size() != wanted) {
    if (tracks_.size() != wanted) tracks_ = QPixmap(wanted);
    tracks_.setDevicePixelRatio(ratio);
    QPainter painter(&tracks_);
    painter.setFont(font());
    paint_tracks(painter);
    tracks_old_ = false;
  }
  QPainter painter(this);
  painter.drawPixmap(0, 0, tracks_);
  paint_area(painter);
  paint_bookmarks(painter, scene_, palette());
  paint_links(painter, scene_, palette());
  paint_cursor(painter, scene_, palette());
  paint_counter_values(painter, scene_, palette());
}

void TimelineCanvas::paint_tracks(QPainter& painter) {
  const QColor ground = palette().color(QPalette::Base);
  painter.fillRect(rect(), ground);
  QFont small = font();
  small.setPointSizeF(std::max(7.0, font().pointSizeF() * 0.88));
  row_painter_.prepare(palette(), small, devicePixelRatioF());

  const auto& lines = scene_.lines();
  const std::size_t first = first_line_at(lines, scene_.scroll());
  // Paint backgrounds and the grid first, with spans on top.
  const QColor faint = blended(ground, palette().color(QPalette::Text), 0.07);
  for (std::size_t i = first; i < lines.size() && lines[i].y < scene_.scroll() + height(); ++i) {
    const Line& line = lines[i];
    const QRect rect(0, line.y - scene_.scroll(), width(), line.height);
    if (line.type == Line::Type::process || (line.type == Line::Type::group && line.collapsed)) {
      painter.fillRect(rect, palette().color(QPalette::AlternateBase));
      if (rect.height() >= kLowRow) painter.fillRect(QRect(0, rect.y(), width(), 1), faint);
    }
  }
  if (!lines.empty())
    for (const Tick& tick : ticks(scene_.scale()))
      painter.fillRect(QRectF(std::floor(scene_.scale().x(tick.time)), 0, 1, height()), faint);
  for (std::size_t i = first; i < lines.size() && lines[i].y < scene_.scroll() + height(); ++i) {
    const Line& line = lines[i];
    const QRect rect(0, line.y - scene_.scroll(), width(), line.height);
    switch (line.type) {
      case Line::Type::process:
      case Line::Type::row:
        paint_row(painter, line, rect);
        break;
      case Line::Type::counter:
        paint_counter(painter, scene_, line, rect, palette());
        break;
      case Line::Type::path:
        paint_path(painter, line, rect);
        break;
      case Line::Type::group:
        if (line.collapsed) {
          paint_group(painter, line, rect);
          break;
        }
        [[fallthrough]];
      default:
        paint_header(painter, line, rect);
    }
  }
  paint_critical_path(painter, scene_, palette());
}

void TimelineCanvas::paint_header(QPainter& painter, const Line& line, QRect rect) {
  const bool is_run = line.type == Line::Type::run;
  painter.fillRect(rect, palette().color(is_run ? QPalette::Button : QPalette::Window));
  painter.fillRect(QRect(0, rect.bottom(), width(), 1), palette().color(QPalette::Mid));
  const auto run = is_run ? scene_.session().run(line.run) : nullptr;
  if (!run) return;
  // Mark the step that the run's figures describe.
  const TimeRange step = run->figures.step;
  if (step.length() <= 0) return;
  const TimeScale scale = scene_.scale_of(*run);
  const double left = std::max(scale.x(step.begin), -10.0),
               right = std::min(scale.x(step.end), width() + 10.0);
  if (right < 0 || left > width()) return;
  const double y = rect.center().y();
  QString text = tr("step %1").arg(QString::fromStdString(duration_text(step.length())));
  if (run->figures.steps > 1) text = tr("%1 steps, ").arg(run->figures.steps) + text.mid(5);
  const double text_width = painter.fontMetrics().horizontalAdvance(text) + 12;
  QColor colour = palette().color(QPalette::Text);
  painter.setPen(colour);
  const double middle = (std::max(left, 0.0) + std::min<double>(right, width())) / 2;
  const bool fits = std::min<double>(right, width()) - std::max(left, 0.0) > text_width + 20;
  if (fits)
    painter.drawText(QRectF(middle - text_width / 2, rect.y(), text_width, rect.height() - 1),
                     Qt::AlignCenter, text);
  colour.setAlpha(120);
  painter.setPen(colour);
  if (fits) {
    painter.drawLine(QPointF(left, y), QPointF(middle - text_width / 2, y));
    painter.drawLine(QPointF(middle + text_width / 2, y), QPointF(right, y));
  } else {
    painter.drawLine(QPointF(left, y), QPointF(right, y));
  }
  painter.drawLine(QPointF(left, y - 4), QPointF(left, y + 4));
  painter.drawLine(QPointF(right, y - 4), QPointF(right, y + 4));
}

void TimelineCanvas::paint_row(QPainter& painter, const Line& line, QRect rect) {
  const auto run = scene_.session().run(line.run);
  if (!run || !run->timeline || line.row < 0 || line.row >= static_cast<int>(run->timeline->rows.size()))
    return;
  const double ratio = devicePixelRatioF();
  TimeScale scale = scene_.scale_of(*run);
  scale.width = std::floor(width() * ratio);
  const Mipmaps* made = scene_.mipmaps(line.run);
  RowLook look;
  look.only_critical = scene_.state().shows_critical_path() && made && !made->critical.empty();
  if (!scene_.state().search().trimmed().isEmpty() && !scene_.searching()) look.hits = scene_.hits(line.run);
  QRect inside = inside_of(rect);
  if (line.type == Line::Type::process && !line.collapsed) {
    inside = QRect(0, rect.bottom() - kThinStrip - 2, width(), kThinStrip);
    look.texts = false;
  }
  const Hits* hits = look.hits;
  if (line.type == Line::Type::process) {  // a summary's spans are synthetic, so they are never hits
    look.hits = nullptr;
    look.only_critical = look.only_critical && run->timeline->writer == Timeline::Writer::rehearse;
  }
  const Timeline& timeline = *run->timeline;
  const RowMipmap* mipmap = made ? &made->rows[static_cast<std::size_t>(line.row)] : nullptr;
  row_painter_.paint(painter, timeline, line.run, timeline.rows[static_cast<std::size_t>(line.row)], mipmap,
                     scale, inside, look);
  if (line.type == Line::Type::process && line.collapsed && hits)
    row_painter_.paint_hits(painter, timeline, rows_in(line), scale, inside, *hits);
}

void TimelineCanvas::paint_group(QPainter& painter, const Line& line, QRect rect) {
  const auto run = scene_.session().run(line.run);
  const GroupSummaries::Made* made = scene_.groups().find(line.group->ref);
  if (!run || !made || !made->summary) return;
  TimeScale scale = scene_.scale_of(*run);
  scale.width = std::floor(width() * devicePixelRatioF());
  const QRect inside = inside_of(rect);
  const Timeline& timeline = made->summary->timeline;
  row_painter_.paint(painter, timeline, -made->number, timeline.rows.front(), &made->summary->mipmap, scale,
                     inside, {});
  const bool searches = !scene_.state().search().trimmed().isEmpty() && !scene_.searching();
  if (const Hits* hits = searches ? scene_.hits(line.run) : nullptr)
    row_painter_.paint_hits(painter, *run->timeline, rows_in(line), scale, inside, *hits);
}

void TimelineCanvas::paint_path(QPainter& painter, const Line& line, QRect rect) {
  const auto run = scene_.session().run(line.run);
  const PathRow* path = scene_.path_of(line.run);
  if (!run || !path) return;
  TimeScale scale = scene_.scale_of(*run);
  scale.width = std::floor(width() * devicePixelRatioF());
  const QColor edge = critical_colour(is_dark(palette()));
  row_painter_.paint(painter, path->timeline, kPathTexts - line.run, path->timeline.rows.front(),
                     &path->mipmap, scale, rect.adjusted(0, 3, 0, -3), {});
  painter.fillRect(QRect(0, rect.y() + 1, width(), 1), edge);
  painter.fillRect(QRect(0, rect.bottom() - 1, width(), 1), edge);
}

std::vector<int> TimelineCanvas::rows_in(const Line& line) const {
  std::vector<int> rows;
  const auto run = scene_.session().run(line.run);
  if (run)
    for (const auto& [id, row] : rows_under({line}, 0, {run})) rows.push_back(row);
  return rows;
}

void TimelineCanvas::paint_area(QPainter& painter) {
  const auto& area = scene_.state().area();
  if (!area) return;
  const TimeScale scale = scene_.scale();
  const double left = scale.x(area->range.begin), right = scale.x(area->range.end);
  QColor fill = palette().color(QPalette::Highlight);
  QColor edge = fill;
  fill.setAlpha(60);
  int top = height(), bottom = 0;
  const auto& lines = scene_.lines();
  for (std::size_t i = first_line_at(lines, scene_.scroll());
       i < lines.size() && lines[i].y < scene_.scroll() + height(); ++i) {
    const Line& line = lines[i];
    const auto chosen = [&](int row) {
      return std::binary_search(area->rows.begin(), area->rows.end(), std::pair{line.run, row});
    };
    bool inside = false;
    if (line.type == Line::Type::row) {
      inside = chosen(line.row);
    } else if ((line.type == Line::Type::process || line.type == Line::Type::group) && line.collapsed) {
      const std::vector<int> rows = rows_in(line);
      inside = std::any_of(rows.begin(), rows.end(), chosen);
    }
    if (!inside) continue;
    painter.fillRect(QRectF(left, line.y - scene_.scroll(), right - left, line.height), fill);
    top = std::min(top, line.y - scene_.scroll());
    bottom = std::max(bottom, line.bottom() - scene_.scroll());
  }
  painter.setPen(QPen(edge, 1));
  for (const double x : {left, right})
    if (x >= -1 && x <= width() + 1) {
      painter.drawLine(QPointF(std::floor(x), 0), QPointF(std::floor(x), height()));
      painter.fillRect(QRectF(std::floor(x) - 1, top, 3, std::max(0, bottom - top)), edge);
    }
  const QString text = QString::fromStdString(duration_text(area->range.length()));
  const QFontMetrics metrics = painter.fontMetrics();
  const int text_width = metrics.horizontalAdvance(text) + 12;
  const double middle = (std::clamp<double>(left, 0, width()) + std::clamp<double>(right, 0, width())) / 2;
  const QRectF box(std::clamp(middle - text_width / 2.0, 2.0, std::max(2.0, width() - text_width - 2.0)),
                   std::max(2, top - metrics.height() - 6), text_width, metrics.height() + 4);
  if (right < 0 || left > width()) return;
  painter.setPen(Qt::NoPen);
  painter.setBrush(edge);
  painter.drawRoundedRect(box, 3, 3);
  painter.setPen(palette().color(QPalette::HighlightedText));
  painter.drawText(box, Qt::AlignCenter, text);
}

// ----- mouse

int TimelineCanvas::edge_at(QPointF at) const {
  const auto& area = scene_.state().area();
  if (!area) return 0;
  const TimeScale scale = scene_.scale();
  const double left = std::abs(at.x() - scale.x(area->range.begin)),
               right = std::abs(at.x() - scale.x(area->range.end));
  if (std::min(left, right) > kRowEdgeReach) return 0;
  return left < right ? -1 : 1;
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  pressed_at_ = event->position().toPoint();
  pressed_time_ = scene_.scale().time(event->position().x());
  pressed_scroll_ = scene_.scroll();
  pressed_visible_ = scene_.state().visible();
  pressed_line_ = line_at(scene_.lines(), pressed_at_.y() + scene_.scroll());
  const bool pans = event->button() == Qt::MiddleButton ||
                    (event->button() == Qt::LeftButton && event->modifiers().testFlag(Qt::ShiftModifier));
  if (pans) {
    drag_ = Drag::pan;
    setCursor(Qt::ClosedHandCursor);
  } else if (event->button() == Qt::LeftButton) {
    edge_ = edge_at(event->position());
    drag_ = edge_ != 0 ? Drag::edge : Drag::pressed;
  }
}

void TimelineCanvas::pan_to(QPoint to) {
  const double ns =
      1 / TimeScale{pressed_visible_, 0, static_cast<double>(std::max(1, width()))}.pixels_per_ns();
  const Time by = static_cast<Time>(std::llround((pressed_at_.x() - to.x()) * ns));
  scene_.state().set_visible(panned(pressed_visible_, by, scene_.state().whole()), false);
  scene_.set_scroll(pressed_scroll_ + pressed_at_.y() - to.y());
}

void TimelineCanvas::drag_area(QPoint to) {
  const TimeScale scale = scene_.scale();
  Area area;
  if (drag_ == Drag::edge) {
    area = *scene_.state().area();
    Time& edge = edge_ < 0 ? area.range.begin : area.range.end;
    edge = scale.time(to.x());
    if (area.range.begin > area.range.end) {
      std::swap(area.range.begin, area.range.end);
      edge_ = -edge_;
    }
    if (area.range.length() == 0) return;
  } else {
    const Time time = scale.time(std::clamp(to.x(), 0, width()));
    area.range = {std::min(time, pressed_time_), std::max(time, pressed_time_)};
    if (area.range.length() == 0) return;
    const auto& lines = scene_.lines();
    int line = line_at(lines, std::max(0, to.y() + scene_.scroll()));
    if (line < 0) line = static_cast<int>(lines.size()) - 1;
    const int from = pressed_line_ < 0 ? static_cast<int>(lines.size()) - 1 : pressed_line_;
    area.rows = rows_of_lines(lines, std::min(from, line), std::max(from, line), scene_.session().shown());
    if (area.rows.empty()) return;
  }
  scene_.state().select(std::move(area));
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPoint at = event->position().toPoint();
  if (drag_ != Drag::pan && !scene_.lines().empty())
    scene_.state().set_cursor(scene_.scale().time(event->position().x()));
  if (drag_ == Drag::pressed && (at - pressed_at_).manhattanLength() > 4) drag_ = Drag::area;
  if (drag_ == Drag::pan) pan_to(at);
  if (drag_ == Drag::area || drag_ == Drag::edge) drag_area(at);
  if (drag_ == Drag::none) {
    const bool movable = edge_at(event->position()) != 0;
    setCursor(movable ? Qt::SplitHCursor : Qt::ArrowCursor);
  }
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const Drag was = drag_;
  drag_ = Drag::none;
  if (was == Drag::pan) {
    setCursor(Qt::ArrowCursor);
    // Adds the range to the history that the user can return to.
    scene_.state().set_visible(scene_.state().visible());
  }
  if (was != Drag::pressed || event->button() != Qt::LeftButton) return;
  const TimelineScene::Place place = scene_.at(event->position());
  if (place.span.span != kNoSpan)
    scene_.state().select(place.span);
  else
    scene_.state().clear_selection();
}

void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const TimelineScene::Place place = scene_.at(event->position());
  if (place.group && place.span.span == kNoSpan)
    return scene_.state().set_collapsed(place.group->ref, !place.collapsed);
  if (place.span.span == kNoSpan) return;
  scene_.state().select(place.span);
  const TimeRange range = scene_.range_of(place.span);
  const Time margin = std::max<Time>(5, range.length() / 10);
  scene_.state().set_visible({range.begin - margin, range.end + margin});
}

void TimelineCanvas::leaveEvent(QEvent*) {
  scene_.state().set_cursor(std::nullopt);
}

void TimelineCanvas::contextMenuEvent(QContextMenuEvent* event) {
  const TimelineScene::Place place = scene_.at(event->pos());
  if (place.span.span != kNoSpan) scene_.state().select(place.span);
  emit menu_wanted(place, event->globalPos());
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  ViewState& state = scene_.state();
  const QPoint degrees = event->angleDelta();
  const double steps = (degrees.y() != 0 ? degrees.y() : degrees.x()) / 120.0;
  event->accept();
  if (event->modifiers().testFlag(Qt::ControlModifier)) {
    state.set_visible(zoomed(state.visible(), std::pow(0.8, steps),
                             scene_.scale().time(event->position().x()), state.whole()));
  } else if (event->modifiers().testFlag(Qt::ShiftModifier) || (degrees.y() == 0 && degrees.x() != 0)) {
    const auto by =
        static_cast<Time>(std::llround(-steps * static_cast<double>(state.visible().length()) / 10));
    state.set_visible(panned(state.visible(), by, state.whole()), false);
  } else {
    const QPoint pixels = event->pixelDelta();
    scene_.set_scroll(scene_.scroll() -
                      (pixels.y() != 0 ? pixels.y() : static_cast<int>(std::lround(steps * 60))));
  }
}

QString TimelineCanvas::tip_at(const TimelineScene::Place& place) const {
  if (place.group) return place.collapsed ? tip_of(*place.group, place.time) : QString();
  const auto run = scene_.session().run(place.span.run);
  if (!run || place.span.span == kNoSpan) return {};
  const Timeline& timeline = *run->timeline;
  const SpanColumns& spans = timeline.spans;
  const SpanId s = place.span.span;
  QString text = QStringLiteral("<b>%1</b><br>%2 &nbsp; %3<br>%4")
                     .arg(QString::fromStdString(timeline.name_of(s)).toHtmlEscaped(),
                          QString::fromStdString(style_name(style_of(spans.kind[s], spans.pass[s]))),
                          QString::fromStdString(duration_text(spans.end[s] - spans.begin[s])),
                          tr("begins at %1")
                              .arg(QString::fromStdString(moment_text(
                                  spans.begin[s] - run->aligned,
                                  std::max(1.0, static_cast<double>(spans.end[s] - spans.begin[s]) / 100)))));
  if (spans.bytes[s] > 0)
    text += QStringLiteral("<br>") + QString::fromStdString(amount_text(spans.bytes[s], "B"));
  return text;
}

QString TimelineCanvas::tip_of(const RankGroup& group, Time time) const {
  const auto run = scene_.session().run(group.ref.run);
  if (!run) return {};
  QString text = QStringLiteral("<b>%1</b>").arg(tr("Of %1 ranks").arg(group.ranks));
  for (const Doing& doing : doing_at(*run->timeline, group.processes, time + run->aligned))
    text += QStringLiteral("<br>%1 &nbsp; %2")
                .arg(QString::fromStdString(doing.name).toHtmlEscaped())
                .arg(doing.ranks);
  return text;
}

bool TimelineCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString tip = tip_at(scene_.at(help->pos()));
    if (tip.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), tip, this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace rehearse::gui
