#include "gui/views/memory/memory_bars.hpp"

#include <fmt/format.h>

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

// Below this share of the capacity the bars would be too low to read, so the axis ends just above them.
constexpr double kLow = 0.08;

QString qt(const std::string& text) {
  return QString::fromStdString(text);
}

// Returns the number of a stage's name: "12" of "stage 12"; other names stay unchanged.
QString number_of(const QString& name) {
  const QString last = name.section(' ', -1);
  bool is_number = false;
  last.toInt(&is_number);
  return is_number ? last : name;
}

}  // namespace

QColor colour_of_part(int part, bool dark) {
  return colour_of_run(part, dark);
}

std::vector<double> memory_marks(double top, double pixels) {
  std::vector<double> marks;
  if (!(top > 0)) return marks;
  const double wanted = top / std::max(1.0, std::floor(pixels / 42));
  const double unit = std::pow(1024.0, std::floor(std::log(wanted) / std::log(1024.0)));
  double step = unit;
  for (const double factor : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1024}) {
    step = factor * unit;
    if (step >= wanted) break;
  }
  for (double mark = 0; mark <= top; mark += step) marks.push_back(mark);
  return marks;
}

MemoryBars::MemoryBars(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName("Memory of each stage");
  setAccessibleDescription("Stacked bars; the left and right keys move between stages");
}

void MemoryBars::set_memory(std::vector<RunMemory> runs) {
  runs_ = std::move(runs);
  update();
}

void MemoryBars::choose(int run, int stage) {
  run_ = run;
  stage_ = stage;
  update();
}

QRectF MemoryBars::plot() const {
  const QFontMetricsF metrics(font());
  return QRectF(rect()).adjusted(metrics.horizontalAdvance("1000 GiB") + 10, metrics.height() * 2 + 12, -10,
                                 -2 * metrics.height() - 10);
}

double MemoryBars::top() const {
  double most = 1, capacity = 0;
  for (const RunMemory& run : runs_) {
    for (const StageMemory& stage : run.stages) most = std::max(most, stage.total);
    capacity = std::max(capacity, run.capacity);
  }
  return 1.06 * (most < kLow * capacity ? most : std::max(most, capacity));
}

double MemoryBars::y(double bytes) const {
  return plot().bottom() - bytes / top() * plot().height();
}

QRectF MemoryBars::bar(int run, int stage) const {
  // The runs are side by side with a gap of one bar's width; all stages have the same width.
  double all = 0, before = 0;
  for (int r = 0; r < static_cast<int>(runs_.size()); ++r) {
    const double own = std::max<double>(1, static_cast<double>(runs_[r].stages.size()));
    if (r < run) before += own + 1;
    all += own + (r + 1 < static_cast<int>(runs_.size()) ? 1 : 0);
  }
  const QRectF area = plot();
  const double each = area.width() / std::max(1.0, all);
  const double width = std::clamp(each * 0.74, 1.5, 92.0);
  const double centre = area.left() + each * (before + stage + 0.5);
  const double total =
      stage < static_cast<int>(runs_[run].stages.size()) ? runs_[run].stages[stage].total : 0;
  return {centre - width / 2, y(total), width, area.bottom() - y(total)};
}

std::pair<int, int> MemoryBars::at(QPointF point) const {
  for (int r = 0; r < static_cast<int>(runs_.size()); ++r)
    for (int s = 0; s < static_cast<int>(runs_[r].stages.size()); ++s) {
      QRectF column = bar(r, s).adjusted(-2, 0, 2, 0);
      column.setTop(0);
      column.setBottom(height());
      if (column.contains(point)) return {r, s};
    }
  return {-1, -1};
}

void MemoryBars::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  const bool any =
      std::any_of(runs_.begin(), runs_.end(), [](const RunMemory& run) { return !run.stages.empty(); });
  if (!any) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap, message);
    return;
  }
  const QRectF area = plot();
  const QFontMetricsF metrics(font());
  for (const double mark : memory_marks(top(), area.height())) {
    QColor line = palette().color(QPalette::Mid);
    line.setAlpha(mark == 0 ? 255 : 110);
    painter.setPen(line);
    painter.drawLine(QPointF(area.left(), y(mark)), QPointF(area.right(), y(mark)));
    painter.setPen(palette().color(QPalette::Text));
    const QString text = mark == 0 ? QString("0") : qt(memory_text(mark)).replace(".0 ", " ");
    painter.drawText(QRectF(0, y(mark) - metrics.height() / 2, area.left() - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, text);
  }
  for (int run = 0; run < static_cast<int>(runs_.size()); ++run) paint_run(painter, run);
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(palette().color(QPalette::Highlight));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

void MemoryBars::paint_run(QPainter& painter, int run) const {
  const RunMemory& memory = runs_[run];
  const QRectF area = plot();
  const QFontMetricsF metrics(font());
  const bool dark = is_dark(palette());
  const int count = static_cast<int>(memory.stages.size());
  const QRectF first = bar(run, 0), last = bar(run, std::max(0, count - 1));
  const double each = count > 1 ? bar(run, 1).center().x() - first.center().x() : first.width() / 0.74;
  const double left = first.center().x() - each / 2, right = last.center().x() + each / 2;

  // Draw the run's name, and how full its fullest stage is.
  QFont bold = font();
  bold.setBold(true);
  const double room = right - left + (runs_.size() > 1 ? each * 0.8 : 0);
  painter.setFont(bold);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QPointF(left, 4 + metrics.ascent()),
                   QFontMetricsF(bold).elidedText(qt(memory.name), Qt::ElideRight, room));
  painter.setFont(font());
  painter.setPen(memory.fits ? palette().color(QPalette::Text) : critical_colour(dark));
  painter.drawText(QPointF(left, 5 + metrics.height() + metrics.ascent()),
                   metrics.elidedText(qt(memory.sentence), Qt::ElideRight, room));

  const double named = [&] {  // number of bars that one name spans
    double widest = 0;
    for (const StageMemory& stage : memory.stages)
      widest = std::max(widest, metrics.horizontalAdvance(number_of(qt(stage.name))) + 6);
    return std::ceil(widest / std::max(1.0, each));
  }();
  bool whole_names = true, all_totals = true;
  for (const StageMemory& stage : memory.stages) {
    whole_names = whole_names && metrics.horizontalAdvance(qt(stage.name)) + 6 <= each;
    all_totals = all_totals && metrics.horizontalAdvance(qt(memory_text(stage.total))) + 4 <= each;
  }
  for (int s = 0; s < count; ++s) {
    const StageMemory& stage = memory.stages[s];
    const QRectF box = bar(run, s);
    double below = 0;
    for (std::size_t part = 0; part < stage.parts.size(); ++part) {
      const QRectF piece(box.left(), y(below + stage.parts[part]), box.width(),
                         y(below) - y(below + stage.parts[part]));
      const QColor ground = colour_of_part(static_cast<int>(part), dark);
      painter.fillRect(piece, ground);
      const QString text = qt(memory_text(stage.parts[part]));
      if (piece.height() >= metrics.height() && metrics.horizontalAdvance(text) + 4 <= piece.width()) {
        painter.setPen(text_on(ground));
        painter.drawText(piece, Qt::AlignCenter, text);
      }
      below += stage.parts[part];
    }
    if (!stage.server && memory.capacity > 0 && stage.total > memory.capacity) {
      const QRectF over(box.left(), y(stage.total), box.width(), y(memory.capacity) - y(stage.total));
      painter.fillRect(over, QBrush(critical_colour(dark), Qt::BDiagPattern));
      painter.setPen(QPen(critical_colour(dark), 1.5));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(over);
    }
  }
  if (memory.capacity > 0 && memory.capacity <= top()) {
    painter.setPen(QPen(palette().color(QPalette::Text), 1.4, Qt::DashLine));
    painter.drawLine(QPointF(left, y(memory.capacity)), QPointF(right, y(memory.capacity)));
  }
  for (int s = 0; s < count; ++s) {
    const StageMemory& stage = memory.stages[s];
    const QRectF box = bar(run, s);
    const bool chosen = run == run_ && s == stage_, fullest = s == memory.fullest;
    if (chosen) {
      painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(box.adjusted(-2, -2, 2, 1));
    }
    if (all_totals || fullest) {
      const QString text = qt(memory_text(stage.total));
      QRectF place(box.center().x() - 100, box.top() - metrics.height() - 2, 200, metrics.height());
      const double half = metrics.horizontalAdvance(text) / 2 + 8;
      if (place.center().x() - half < area.left()) place.moveLeft(area.left() + half - 100);
      if (place.center().x() + half > width()) place.moveRight(width() - half + 100);
      painter.setPen(stage.server || memory.fits || !fullest ? palette().color(QPalette::Text)
                                                             : critical_colour(dark));
      painter.setFont(fullest ? bold : font());
      QColor behind = palette().color(QPalette::Base);
      behind.setAlpha(210);
      painter.fillRect(QRectF(place.center().x() - half + 6, place.top(), 2 * half - 12, place.height()),
                       behind);
      painter.drawText(place, Qt::AlignCenter, text);
      painter.setFont(font());
    }
    if (fullest && count > 1) {  // a triangle below the bar
      QPolygonF mark;
      mark << QPointF(box.center().x(), area.bottom() + 1) << QPointF(box.center().x() - 4, area.bottom() + 7)
           << QPointF(box.center().x() + 4, area.bottom() + 7);
      painter.setPen(Qt::NoPen);
      painter.setBrush(memory.fits ? palette().color(QPalette::Text) : critical_colour(dark));
      painter.setRenderHint(QPainter::Antialiasing);
      painter.drawPolygon(mark);
      painter.setRenderHint(QPainter::Antialiasing, false);
    }
    if (!whole_names && s % std::max(1, static_cast<int>(named)) != 0) continue;
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(box.center().x() - 150, area.bottom() + 7, 300, metrics.height()),
                     Qt::AlignCenter, whole_names ? qt(stage.name) : number_of(qt(stage.name)));
  }
  if (!whole_names && count > 1) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(QRectF(left, area.bottom() + 6 + metrics.height(), right - left, metrics.height()),
                     Qt::AlignCenter, qt(memory.stages.front().name).section(' ', 0, -2));
  }
}

QString MemoryBars::tip_of(int run, int stage) const {
  const StageMemory& memory = runs_[run].stages[stage];
  QString text = qt(memory.rank.empty() ? memory.name : memory.rank);
  for (std::size_t part = 0; part < memory.parts.size(); ++part)
    text += qt(fmt::format("\n{} {}", kMemoryParts[part], memory_text(memory.parts[part])));
  text += "\ntotal " + qt(memory_text(memory.total));
  if (memory.server)
    text += " (a server's processor)";
  else if (runs_[run].capacity > 0)
    text += " of " + qt(memory_text(runs_[run].capacity));
  return text;
}

bool MemoryBars::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* const help = static_cast<QHelpEvent*>(event);
    const auto [run, stage] = at(help->pos());
    if (run >= 0)
      QToolTip::showText(help->globalPos(), tip_of(run, stage), this);
    else
      QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

void MemoryBars::mousePressEvent(QMouseEvent* event) {
  const auto [run, stage] = at(event->position());
  if (run >= 0) emit stage_chosen(run, stage);
}

void MemoryBars::keyPressEvent(QKeyEvent* event) {
  const bool left = event->key() == Qt::Key_Left, right = event->key() == Qt::Key_Right;
  if ((!left && !right) || run_ < 0) return QWidget::keyPressEvent(event);
  int run = run_, stage = stage_ + (right ? 1 : -1);
  if (stage >= static_cast<int>(runs_[run].stages.size())) {
    ++run;
    stage = 0;
  } else if (stage < 0) {
    --run;
    stage = run >= 0 ? static_cast<int>(runs_[run].stages.size()) - 1 : -1;
  }
  if (run >= 0 && run < static_cast<int>(runs_.size()) && stage >= 0 &&
      stage < static_cast<int>(runs_[run].stages.size()))
    emit stage_chosen(run, stage);
}

}  // namespace rehearse::gui
