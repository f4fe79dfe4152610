#include "gui/views/timeline/timeline_labels.hpp"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include "gui/models/runs/run_list.hpp"
#include "gui/models/tracks/area_tracks.hpp"
#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

constexpr int kTriangle = 14, kBox = 14;

bool has_triangle(const Line& line) {
  return line.type == Line::Type::run || line.type == Line::Type::group || line.type == Line::Type::process ||
         line.type == Line::Type::counters;
}

// Returns whether the line gets a box: it is high enough, and has tracks below it that an area can contain.
bool has_box(const Line& line) {
  if (line.height < kBox) return false;
  return line.type == Line::Type::run || line.type == Line::Type::group || line.type == Line::Type::process ||
         line.type == Line::Type::row;
}

// Returns whether the names handle the key while they have the focus, in place of the shortcuts of the
// tracks.
bool is_own(int key) {
  switch (key) {
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Home:
    case Qt::Key_End:
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      return true;
    default:
      return false;
  }
}

int indent_of(Line::Type type) {
  switch (type) {
    case Line::Type::run:
    case Line::Type::pinned:
    case Line::Type::group:
    case Line::Type::counters:
    case Line::Type::path:
      return 4;
    case Line::Type::process:
      return 8;
    default:
      return 26;
  }
}

// Returns how many rows of this height share one name.
int every(int row_height, int text_height) {
  int every = 1;
  while (every * row_height < text_height) every *= 2;
  return every;
}

// Removes a final "(64 ranks)", because the number is shown on the right.
QString without_number(QString name) {
  const qsizetype open = name.lastIndexOf(QLatin1String(" ("));
  if (open > 0 && name.endsWith(QLatin1String("ranks)"))) name.truncate(open);
  return name;
}

}  // namespace

TimelineLabels::TimelineLabels(TimelineScene& scene, QWidget* parent) : QWidget(parent), scene_(scene) {
  setAccessibleName(tr("Names of the tracks"));
  setAccessibleDescription(
      tr("Arrow keys move between names and collapse or expand; Space chooses tracks for the selected area"));
  setMinimumWidth(90);
  setFocusPolicy(Qt::TabFocus);
  const auto again = [this] { update(); };
  connect(&scene_, &TimelineScene::lines_changed, this, again);
  connect(&scene_, &TimelineScene::scrolled, this, again);
  connect(&scene_, &TimelineScene::content_changed, this, again);
  connect(&scene_.state(), &ViewState::selection_changed, this, again);
}

QString TimelineLabels::text_of(const Line& line) const {
  if (line.type == Line::Type::pinned) return tr("Pinned");
  const auto run = scene_.session().run(line.run);
  if (!run || !run->timeline) return {};
  const Timeline& timeline = *run->timeline;
  const auto process = [&]() -> const Process& {
    return timeline.processes[static_cast<std::size_t>(line.process)];
  };
  switch (line.type) {
    case Line::Type::run:
      return QString::fromStdString(run->name);
    case Line::Type::group: {
      const QString name = QString::fromStdString(group_of(*run, line.process, scene_.state().grouping()));
      if (scene_.state().grouping() == Grouping::kind) return without_number(name);
      const QString kind = scene_.state().grouping() == Grouping::node    ? tr("Node")
                           : scene_.state().grouping() == Grouping::stage ? tr("Stage")
                                                                          : tr("Role");
      if (name.isEmpty()) return tr("No %1").arg(kind.toLower());
      // The name lists several nodes.
      if (scene_.state().grouping() == Grouping::node && name.contains(' ')) return name;
      return name.startsWith(kind, Qt::CaseInsensitive) ? name : kind + QLatin1Char(' ') + name;
    }
    case Line::Type::process: {
      const QString name = QString::fromStdString(process().name);
      return process().members > 1 ? without_number(name) : name;
    }
    case Line::Type::row: {
      if (!line.first_of_track) return {};
      const int track = timeline.rows[static_cast<std::size_t>(line.row)].track;
      return QString::fromStdString(timeline.tracks[static_cast<std::size_t>(track)].name);
    }
    case Line::Type::counters:
      return tr("Counters");
    case Line::Type::path:
      return tr("Critical path");
    case Line::Type::counter:
      return QString::fromStdString(timeline.counters[static_cast<std::size_t>(line.counter)].name);
    case Line::Type::pinned:
      break;
  }
  return {};
}

void TimelineLabels::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  const auto& lines = scene_.lines();
  QFont bold = font();
  bold.setWeight(QFont::DemiBold);
  const auto& pinned = scene_.state().pinned();
  int selected_run = 0, selected_row = -1;
  if (const auto& selected = scene_.state().selected(); selected && scene_.knows(*selected)) {
    selected_run = selected->run;
    selected_row = scene_.session().run(selected->run)->timeline->row_of(selected->span);
  }
  for (std::size_t i = first_line_at(lines, scene_.scroll());
       i < lines.size() && lines[i].y < scene_.scroll() + height(); ++i) {
    const Line& line = lines[i];
    const QRect box(0, line.y - scene_.scroll(), width(), line.height);
    const bool is_run = line.type == Line::Type::run;
    // A rank, or a group that is shown like one.
    const bool is_process = line.type == Line::Type::process || line.number >= 0;
    const bool is_header =
        !is_process && (is_run || line.type == Line::Type::group || line.type == Line::Type::pinned ||
                        line.type == Line::Type::counters);
    if (is_header) {
      painter.fillRect(box, palette().color(is_run ? QPalette::Button : QPalette::Window));
      painter.fillRect(QRect(0, box.bottom(), width(), 1), palette().color(QPalette::Mid));
    } else if (is_process) {
      painter.fillRect(box, palette().color(QPalette::AlternateBase));
    }
    if (line.type == Line::Type::row && line.run == selected_run && line.row == selected_row)
      painter.fillRect(QRect(0, box.y(), 3, box.height()), palette().color(QPalette::Highlight));
    int left = indent_of(line.type);
    painter.setFont(is_header || is_process ? bold : font());
    QColor ink = palette().color(is_run ? QPalette::ButtonText : QPalette::Text);
    QColor weak = ink;
    weak.setAlpha(170);
    const bool low = line.number >= 0 && line.height < fontMetrics().height();
    if (low) continue;  // painted by paint_low_names()
    if (has_triangle(line)) {
      painter.setRenderHint(QPainter::Antialiasing);
      painter.setPen(Qt::NoPen);
      painter.setBrush(weak);
      const QPointF middle(left + 5, box.center().y() + 0.5);
      painter.drawPolygon(
          line.collapsed || line.summary
              ? QPolygonF({middle + QPointF(-2.5, -4), middle + QPointF(-2.5, 4), middle + QPointF(3, 0)})
              : QPolygonF({middle + QPointF(-4, -2.5), middle + QPointF(4, -2.5), middle + QPointF(0, 3)}));
      painter.setRenderHint(QPainter::Antialiasing, false);
      left += kTriangle;
    }
    // Right column: source and step of a run, or the number of ranks that a line represents.
    QString right;
    const auto run = scene_.session().run(line.run);
    if (is_run && run) {
      // Show the source, and the step if there is room, only beside the entire name.
      right = source_text(run->source);
      const QString step = run->figures.step_time_s > 0
                               ? QStringLiteral(", %1").arg(QString::fromStdString(
                                     duration_text(std::llround(run->figures.step_time_s * 1e9))))
                               : QString();
      const int name = QFontMetrics(bold).horizontalAdvance(text_of(line)) + left + 24;
      if (name + fontMetrics().horizontalAdvance(right + step) <= width()) right += step;
      if (name + fontMetrics().horizontalAdvance(right) > width()) right.clear();
    } else if (line.group) {
      if (line.group->ranks > 1) right = QStringLiteral("\u00d7%1").arg(line.group->ranks);
    } else if (is_process && run) {
      const Process& process = run->timeline->processes[static_cast<std::size_t>(line.process)];
      if (process.members > 1) right = QStringLiteral("\u00d7%1").arg(process.members);
      if (std::find(pinned.begin(), pinned.end(), ViewState::ProcessRef(line.run, line.process)) !=
          pinned.end()) {
        QString name = scene_.session().shown().size() > 1
                           ? QString::fromStdString(run->name) + QLatin1Char(' ')
                           : QString();
        right = name + right;
      }
    }
    const bool boxed = scene_.state().area() && has_box(line);
    const int end = width() - 6 - (boxed ? kBox + 6 : 0);
    if (boxed) paint_box(painter, i);
    int right_width = 0;
    const QString text = text_of(line);
    if (!right.isEmpty()) {
      painter.setFont(font());
      right_width = painter.fontMetrics().horizontalAdvance(right) + 8;
      // The name is more important than the right column.
      if (end - left - right_width < std::min(60, painter.fontMetrics().horizontalAdvance(text)))
        right_width = 0;
      if (right_width > 0) {
        painter.setPen(weak);
        painter.drawText(QRect(end - right_width, box.y() + 1, right_width, box.height() - 2),
                         Qt::AlignRight | Qt::AlignVCenter, right);
      }
    }
    painter.setFont(is_header || is_process ? bold : font());
    painter.setPen(ink);
    const QRect room(left, box.y(), end - left - right_width, box.height());
    painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(text, Qt::ElideMiddle, room.width()));
  }
  paint_low_names(painter);
  if (hasFocus() && current_ >= 0 && current_ < static_cast<int>(lines.size())) {
    const Line& line = lines[static_cast<std::size_t>(current_)];
    painter.setPen(palette().color(QPalette::Highlight));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRect(0, line.y - scene_.scroll(), width() - 2, line.height - 1));
  }
  painter.fillRect(QRect(width() - 1, 0, 1, height()), palette().color(QPalette::Mid));
}

// Writes a name over every few low rows, as densely as they fit.
void TimelineLabels::paint_low_names(QPainter& painter) {
  const auto& lines = scene_.lines();
  QFont small = font();
  small.setPointSizeF(std::max(6.5, font().pointSizeF() * 0.85));
  painter.setFont(small);
  const int text_height = painter.fontMetrics().height();
  const int left = indent_of(Line::Type::process) + kTriangle;
  // Bottom of the last line that is not low; its own name must stay visible.
  int free_from = 0;
  for (std::size_t i = first_line_at(lines, std::max(0, scene_.scroll() - text_height));
       i < lines.size() && lines[i].y < scene_.scroll() + height() + text_height; ++i) {
    const Line& line = lines[i];
    const int top = line.y - scene_.scroll();
    const bool low = line.number >= 0 && line.height < fontMetrics().height();
    if (!low) {
      free_from = top + line.height;
      continue;
    }
    const int text_top = std::max(top + (line.height - text_height) / 2, free_from);
    if (line.number % every(line.height, text_height) != 0 || text_top > top + line.height) continue;
    // Require that all lines below the text are low rows.
    bool room = true;
    for (std::size_t next = i + 1;
         next < lines.size() && lines[next].y - scene_.scroll() < text_top + text_height; ++next)
      room = room && lines[next].number >= 0 && lines[next].height < fontMetrics().height();
    if (!room) continue;
    painter.setPen(palette().color(QPalette::Text));
    const QRect box(left, text_top, width() - left - 6, text_height);
    painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(text_of(line), Qt::ElideMiddle, box.width()));
    painter.fillRect(QRect(left - 8, top + line.height / 2, 5, 1), palette().color(QPalette::Text));
    free_from = text_top + text_height;
  }
}

QRect TimelineLabels::box_of(const Line& line) const {
  return {width() - kBox - 6, line.y - scene_.scroll() + (line.height - kBox) / 2, kBox, kBox};
}

// Paints the box by hand, because a style's check box hardly contrasts with some backgrounds.
void TimelineLabels::paint_box(QPainter& painter, std::size_t at) {
  const QRectF box = QRectF(box_of(scene_.lines()[at])).adjusted(0.5, 0.5, -0.5, -0.5);
  const Chosen chosen =
      chosen_of(*scene_.state().area(), rows_under(scene_.lines(), at, scene_.session().shown()));
  QColor frame = palette().color(QPalette::Text);
  frame.setAlpha(130);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(chosen == Chosen::none ? frame : palette().color(QPalette::Highlight), 1));
  painter.setBrush(palette().color(chosen == Chosen::none ? QPalette::Base : QPalette::Highlight));
  painter.drawRoundedRect(box, 2.5, 2.5);
  painter.setPen(
      QPen(palette().color(QPalette::HighlightedText), 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  const QPointF middle = box.center();
  if (chosen == Chosen::all)
    painter.drawPolyline(
        QPolygonF({middle + QPointF(-3.2, 0.2), middle + QPointF(-1, 2.6), middle + QPointF(3.4, -2.6)}));
  if (chosen == Chosen::some) painter.drawLine(middle - QPointF(3, 0), middle + QPointF(3, 0));
  painter.restore();
}

void TimelineLabels::toggle_in_area(int line) {
  const auto& area = scene_.state().area();
  const auto& lines = scene_.lines();
  if (!area || line < 0 || line >= static_cast<int>(lines.size())) return;
  const auto at = static_cast<std::size_t>(line);
  if (has_box(lines[at]))
    scene_.state().select(toggled(*area, rows_under(lines, at, scene_.session().shown())));
}

void TimelineLabels::set_collapsed(const Line& line, bool collapsed) {
  if (line.group)
    scene_.state().set_collapsed(line.group->ref, collapsed);
  else if (has_triangle(line))
    scene_.state().set_collapsed({line.run, line.process}, collapsed);
}

void TimelineLabels::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const int at = line_at(scene_.lines(), static_cast<int>(event->position().y()) + scene_.scroll());
  if (at < 0) return;
  const Line line =
      scene_.lines()[static_cast<std::size_t>(at)];  // a copy, because collapsing rebuilds all lines
  current_ = at;
  if (scene_.state().area() && has_box(line) &&
      box_of(line).adjusted(-4, -8, 6, 8).contains(event->position().toPoint()))
    return toggle_in_area(at);
  set_collapsed(line, !line.collapsed && !line.summary);
  if (line.type == Line::Type::run) scene_.session().set_current(line.run);
}

// Ignores the second click of a double click, so that it does not undo the first one.
void TimelineLabels::mouseDoubleClickEvent(QMouseEvent* event) {
  event->accept();
}

void TimelineLabels::contextMenuEvent(QContextMenuEvent* event) {
  TimelineScene::Place place = scene_.at(QPointF(-1e5, event->pos().y()));
  place.span = {};
  emit menu_wanted(place, event->globalPos());
}

void TimelineLabels::wheelEvent(QWheelEvent* event) {
  scene_.set_scroll(scene_.scroll() - event->angleDelta().y() / 2);
  event->accept();
}

// ----- keyboard

void TimelineLabels::go_to(int line) {
  const auto& lines = scene_.lines();
  if (lines.empty()) return;
  current_ = std::clamp(line, 0, static_cast<int>(lines.size()) - 1);
  const Line& now = lines[static_cast<std::size_t>(current_)];
  if (now.y < scene_.scroll()) scene_.set_scroll(now.y);
  if (now.bottom() > scene_.scroll() + height()) scene_.set_scroll(now.bottom() - height());
  update();
}

void TimelineLabels::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  const auto first = static_cast<int>(first_line_at(scene_.lines(), scene_.scroll()));
  go_to(current_ < 0 ? first : current_);
}

void TimelineLabels::keyPressEvent(QKeyEvent* event) {
  const auto& lines = scene_.lines();
  if (lines.empty() || !is_own(event->key())) return QWidget::keyPressEvent(event);
  if (current_ < 0 || current_ >= static_cast<int>(lines.size())) go_to(current_);
  // A copy, because collapsing rebuilds all lines.
  const Line line = lines[static_cast<std::size_t>(current_)];
  const int page = std::max(1, height() / std::max(1, scene_.row_height()) - 1);
  switch (event->key()) {
    case Qt::Key_Up:
      return go_to(current_ - 1);
    case Qt::Key_Down:
      return go_to(current_ + 1);
    case Qt::Key_Home:
      return go_to(0);
    case Qt::Key_End:
      return go_to(static_cast<int>(lines.size()) - 1);
    case Qt::Key_PageUp:
      return go_to(current_ - page);
    case Qt::Key_PageDown:
      return go_to(current_ + page);
    case Qt::Key_Left:
      return set_collapsed(line, true);
    case Qt::Key_Right:
      return set_collapsed(line, false);
    case Qt::Key_Space:
      if (scene_.state().area()) return toggle_in_area(current_);
      [[fallthrough]];
    default:
      return set_collapsed(line, !line.collapsed && !line.summary);
  }
}

bool TimelineLabels::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (is_own(key->key()) && key->modifiers() == Qt::NoModifier) {
      event->accept();
      return true;
    }
  }
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int at = line_at(scene_.lines(), help->pos().y() + scene_.scroll());
    QString text;
    if (at >= 0) {
      const Line& line = scene_.lines()[static_cast<std::size_t>(at)];
      text = text_of(line);
      const auto run = scene_.session().run(line.run);
      if (line.type == Line::Type::process && run)
        text = QString::fromStdString(run->timeline->processes[static_cast<std::size_t>(line.process)].name);
      if (line.group)
        text += tr("\nClick: collapse or expand the group (G)");
      else if (line.type == Line::Type::process)
        text += line.collapsed ? tr("\nClick: show its tracks (E)") : tr("\nClick: show one row (C)");
      else if (line.summary)
        text += tr("\nClick: expand the run");
      if (scene_.state().area() && has_box(line) && box_of(line).contains(help->pos()))
        text += tr("\nClick: include it in the selected area, or exclude it (T)");
    }
    QToolTip::showText(help->globalPos(), text, this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace rehearse::gui
