#include "gui/views/tables/plan_coordinates.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <set>

#include "gui/models/tables/plan_words.hpp"
#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {
namespace {

constexpr double kNearLine = 7, kNearAxis = 9;  // pixels; the mouse picks a line or axis within this distance
constexpr double kDrag = 4;  // pixels; moving the mouse further after a press starts a drag
constexpr double kSide = 26, kRightSide = 62, kBelow = 26;
constexpr double kBrushWidth = 14, kLegendWidth = 110, kLegendHeight = 9;
constexpr double kCrowded = 56;            // pixels between axes; below, the font is smaller
constexpr std::size_t kMostSmooth = 3000;  // up to this many lines are antialiased
constexpr std::size_t kMany = 500;         // above this many shown lines, lines are translucent
constexpr double kAlike = 1e-9;

// Returns the tooltip of an axis, with its category names in full, because those beside the axis may be
// elided.
QString tip_of(const PlanAxis& axis) {
  if (axis.scale != PlanAxis::Scale::categories) return axis.tip;
  QStringList words;
  for (const PlanAxis::Mark& mark : axis.marks) words << mark.text;
  return axis.tip + ": " + words.join(", ");
}

}  // namespace

PlanCoordinates::PlanCoordinates(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Plans by all their settings"));
  setAccessibleDescription(tr(
      "Left and right choose an axis; up and down move the upper end of its range, with Shift the lower end; "
      "Delete frees the axis, Escape all of them"));
}

void PlanCoordinates::show_plans(std::shared_ptr<const PlanFile> file, std::vector<PlanAxis> axes) {
  file_ = std::move(file);
  axes_ = std::move(axes);
  shown_.assign(file_->plans.size(), true);
  selected_.clear();
  ranges_.clear();
  under_mouse_.reset();
  pressed_axis_.reset();
  current_axis_ = 0;
  least_s_ = HUGE_VAL;
  most_s_ = 0;
  by_slowness_.clear();
  for (std::size_t i = 0; i < file_->plans.size(); ++i) {
    by_slowness_.push_back(i);
    least_s_ = std::min(least_s_, file_->plans[i].step_time_s);
    most_s_ = std::max(most_s_, file_->plans[i].step_time_s);
  }
  std::stable_sort(by_slowness_.begin(), by_slowness_.end(), [&](std::size_t a, std::size_t b) {
    return file_->plans[a].step_time_s > file_->plans[b].step_time_s;
  });
  update();
}

void PlanCoordinates::set_shown(std::vector<bool> shown) {
  shown_ = std::move(shown);
  update();
}

void PlanCoordinates::set_selected(std::vector<std::size_t> plans) {
  selected_ = std::move(plans);
  update();
}

void PlanCoordinates::set_ranges(PlanRanges ranges) {
  ranges_ = std::move(ranges);
  update();
  emit ranges_changed();
}

// ----- geometry

QRectF PlanCoordinates::area() const {
  const double above = 2 * fontMetrics().height() + 14;
  return QRectF(rect()).adjusted(kSide, above, -kRightSide, -kBelow);
}

double PlanCoordinates::axis_distance() const {
  return axes_.size() > 1 ? area().width() / static_cast<double>(axes_.size() - 1) : area().width();
}

QPointF PlanCoordinates::place_of(std::size_t axis, double place) const {
  const QRectF in = area();
  return {in.left() + axis_distance() * static_cast<double>(axis), in.bottom() - place * in.height()};
}

double PlanCoordinates::share_at(double y) const {
  return std::clamp((area().bottom() - y) / area().height(), 0.0, 1.0);
}

QPolygonF PlanCoordinates::line_of(std::size_t plan) const {
  QPolygonF line;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis)
    if (const double place = axes_[axis].places[plan]; std::isfinite(place)) line << place_of(axis, place);
  return line;
}

std::optional<std::size_t> PlanCoordinates::axis_near(QPointF at) const {
  if (axes_.empty()) return std::nullopt;
  const double place = (at.x() - area().left()) / axis_distance();
  const double nearest = std::clamp(std::round(place), 0.0, static_cast<double>(axes_.size() - 1));
  if (std::abs(place - nearest) * axis_distance() > kNearAxis || at.y() < area().top() - kNearAxis ||
      at.y() > area().bottom() + kNearAxis)
    return std::nullopt;
  return static_cast<std::size_t>(nearest);
}

std::optional<std::size_t> PlanCoordinates::plan_near(QPointF at) const {
  std::optional<std::size_t> nearest;
  double distance = kNearLine;
  // Start with the fastest plan, which wins where lines coincide.
  for (auto plan = by_slowness_.rbegin(); plan != by_slowness_.rend(); ++plan) {
    if (!shown_[*plan]) continue;
    const QPolygonF line = line_of(*plan);
    for (qsizetype i = 1; i < line.size(); ++i) {
      const QPointF from = line[i - 1], to = line[i];
      if (at.x() < from.x() || at.x() > to.x()) continue;
      const double slope = (to.y() - from.y()) / (to.x() - from.x());
      const double away =
          std::abs(from.y() + slope * (at.x() - from.x()) - at.y()) / std::sqrt(1 + slope * slope);
      if (away >= distance) continue;
      distance = away;
      nearest = *plan;
    }
  }
  return nearest;
}

double PlanCoordinates::slowness_of(std::size_t plan) const {
  if (most_s_ <= least_s_ || least_s_ <= 0) return 0;
  return std::log(file_->plans[plan].step_time_s / least_s_) / std::log(most_s_ / least_s_);
}

// ----- painting

void PlanCoordinates::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (axes_.empty()) return;
  paint_lines(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) paint_axis(painter, axis);
  paint_legend(painter);
}

void PlanCoordinates::paint_lines(QPainter& painter) {
  const bool dark = is_dark(palette());
  painter.setRenderHint(QPainter::Antialiasing, by_slowness_.size() <= kMostSmooth);
  QColor faint = palette().color(QPalette::Text);
  faint.setAlpha(28);
  painter.setPen(QPen(faint, 1));
  for (const std::size_t plan : by_slowness_)
    if (!shown_[plan]) painter.drawPolyline(line_of(plan));
  const bool many = std::count(shown_.begin(), shown_.end(), true) > static_cast<std::ptrdiff_t>(kMany);
  for (const std::size_t plan : by_slowness_) {
    if (!shown_[plan]) continue;
    QColor colour = colour_on_scale(slowness_of(plan), dark);
    if (!selected_.empty()) colour.setAlpha(many ? 40 : 110);
    const Qt::PenStyle style = file_->plans[plan].fits ? Qt::SolidLine : Qt::DashLine;
    painter.setPen(QPen(colour, 1.6, style));
    painter.drawPolyline(line_of(plan));
  }
  painter.setRenderHint(QPainter::Antialiasing);
  const auto stand_out = [&](std::size_t plan) {
    const QPolygonF line = line_of(plan);
    painter.setPen(QPen(palette().color(QPalette::Text), 5));
    painter.drawPolyline(line);
    painter.setPen(QPen(colour_on_scale(slowness_of(plan), dark), 2.5));
    painter.drawPolyline(line);
  };
  for (const std::size_t plan : selected_)
    if (shown_[plan]) stand_out(plan);
  if (under_mouse_ && shown_[*under_mouse_]) stand_out(*under_mouse_);
}

void PlanCoordinates::paint_axis(QPainter& painter, std::size_t number) {
  const PlanAxis& axis = axes_[number];
  const QPointF low = place_of(number, 0), high = place_of(number, 1);
  const QColor text = palette().color(QPalette::Text);
  if (const auto range = ranges_.find(number); range != ranges_.end()) {
    const double bottom = place_of(number, range->second.least).y(),
                 top = place_of(number, range->second.most).y();
    QColor fill = palette().color(QPalette::Highlight);
    painter.setPen(QPen(fill, 1.5));
    fill.setAlpha(70);
    painter.setBrush(fill);
    painter.drawRect(QRectF(low.x() - kBrushWidth / 2, top - 3, kBrushWidth, bottom - top + 6));
  }
  QColor line = text;
  line.setAlpha(170);
  painter.setPen(QPen(line, 1.2));
  painter.drawLine(low, high);
  QFont letters = font();
  if (axes_.size() > 1 && axis_distance() < kCrowded) letters.setPointSizeF(0.88 * letters.pointSizeF());
  // Titles alternate between two rows, so that each can extend to the neighbouring axes.
  const QFontMetricsF metrics(letters);
  const bool upper_row = number % 2 == 1, last_of_row = number + 2 >= axes_.size();
  const double from = std::max(2.0, low.x() - axis_distance() + 4),
               to = last_of_row ? width() - 2.0 : low.x() + axis_distance() - 4;
  QFont title_font = letters;
  const bool current = hasFocus() && number == current_axis_;
  title_font.setUnderline(current);
  title_font.setBold(current);
  painter.setFont(title_font);
  painter.setPen(text);
  const QFontMetricsF title_metrics(title_font);
  const QString title = title_metrics.elidedText(axis.title, Qt::ElideRight, to - from);
  const double wide = title_metrics.horizontalAdvance(title);
  const double left = std::clamp(low.x() - wide / 2, from, std::max(from, to - wide));
  painter.drawText(QPointF(left, 4 + metrics.ascent() + (upper_row ? 0 : metrics.height())), title);
  painter.setFont(letters);
  const double mark_room = number + 1 < axes_.size() ? axis_distance() - 8 : kRightSide - 10;
  for (const PlanAxis::Mark& mark : axis.marks) {
    const QPointF at = place_of(number, mark.place);
    painter.setPen(QPen(line, 1.2));
    painter.drawLine(at - QPointF(3, 0), at + QPointF(3, 0));
    const QString told = metrics.elidedText(mark.text, Qt::ElideRight, mark_room);
    // Lines run behind the text, so give it a translucent background.
    const QRectF box(at.x() + 6, at.y() - metrics.height() / 2, metrics.horizontalAdvance(told) + 2,
                     metrics.height());
    QColor ground = palette().color(QPalette::Base);
    ground.setAlpha(205);
    painter.fillRect(box, ground);
    painter.setPen(text);
    painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft, told);
  }
}

void PlanCoordinates::paint_legend(QPainter& painter) {
  const bool dark = is_dark(palette());
  painter.setFont(font());
  const QFontMetricsF metrics(font());
  const Unit unit = unit_of(*file_, PlanFigure::step_time);
  const double y = height() - 6.0 - metrics.height();
  double x = kSide;
  const auto told = [&](const QString& text) {
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QPointF(x, y + metrics.ascent()), text);
    x += metrics.horizontalAdvance(text) + 6;
  };
  told(tr("Step time %1").arg(number_text(least_s_ * unit.factor)));
  QLinearGradient gradient(x, 0, x + kLegendWidth, 0);
  for (int i = 0; i <= 8; ++i) gradient.setColorAt(i / 8.0, colour_on_scale(i / 8.0, dark));
  painter.fillRect(QRectF(x, y + (metrics.height() - kLegendHeight) / 2, kLegendWidth, kLegendHeight),
                   gradient);
  x += kLegendWidth + 6;
  told(number_text(most_s_ * unit.factor) + " " + unit.name);
  const bool too_large =
      std::any_of(file_->plans.begin(), file_->plans.end(), [](const FoundPlan& plan) { return !plan.fits; });
  if (!too_large) return;
  x += 8;
  painter.setPen(QPen(palette().color(QPalette::Text), 1.6, Qt::DashLine));
  painter.drawLine(QPointF(x, y + metrics.height() / 2), QPointF(x + 26, y + metrics.height() / 2));
  x += 32;
  told(tr("too large"));
}

// ----- mouse and keyboard

void PlanCoordinates::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  pressed_at_ = event->position();
  pressed_axis_ = axis_near(pressed_at_);
  dragged_ = false;
  if (pressed_axis_) {
    current_axis_ = *pressed_axis_;
    update();
  } else if (const std::optional<std::size_t> plan = plan_near(event->position())) {
    emit picked(*plan, event->modifiers() & (Qt::ControlModifier | Qt::ShiftModifier));
  }
}

void PlanCoordinates::mouseMoveEvent(QMouseEvent* event) {
  if (pressed_axis_ && (event->buttons() & Qt::LeftButton)) {
    dragged_ = dragged_ || std::abs(event->position().y() - pressed_at_.y()) >= kDrag;
    if (!dragged_) return;
    const double from = share_at(pressed_at_.y()), to = share_at(event->position().y());
    ranges_[*pressed_axis_] = {std::min(from, to), std::max(from, to)};
    update();
    emit ranges_changed();
    return;
  }
  const std::optional<std::size_t> axis = axis_near(event->position());
  setCursor(axis ? Qt::SizeVerCursor : Qt::ArrowCursor);
  const std::optional<std::size_t> plan = axis ? std::nullopt : plan_near(event->position());
  if (plan)
    QToolTip::showText(event->globalPosition().toPoint(), description_of(*file_, *plan), this);
  else if (axis)
    QToolTip::showText(event->globalPosition().toPoint(),
                       tip_of(axes_[*axis]) + "\n" + tr("Drag to choose a range, click to free the axis"),
                       this);
  else
    QToolTip::hideText();
  if (plan == under_mouse_) return;
  under_mouse_ = plan;
  update();
}

void PlanCoordinates::mouseReleaseEvent(QMouseEvent*) {
  if (!pressed_axis_) return;
  const std::size_t axis = *pressed_axis_;
  pressed_axis_.reset();
  if (dragged_ || ranges_.erase(axis) == 0) return;
  update();
  emit ranges_changed();
}

void PlanCoordinates::mouseDoubleClickEvent(QMouseEvent* event) {
  if (!axis_near(event->position()) && plan_near(event->position())) emit activated();
}

void PlanCoordinates::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  under_mouse_.reset();
  update();
}

void PlanCoordinates::move_end(bool upper, bool up) {
  std::set<double> places;
  for (const double place : axes_[current_axis_].places)
    if (std::isfinite(place)) places.insert(place);
  if (places.empty()) return;
  const auto known = ranges_.find(current_axis_);
  PlanRange range = known == ranges_.end() ? PlanRange{*places.begin(), *places.rbegin()} : known->second;
  double& end = upper ? range.most : range.least;
  const auto above = places.upper_bound(end + kAlike);
  const auto at_or_above = places.lower_bound(end - kAlike);
  if (up && above != places.end()) end = *above;
  if (!up && at_or_above != places.begin()) end = *std::prev(at_or_above);
  if (range.least > range.most) range.least = range.most = end;
  ranges_[current_axis_] = range;
  update();
  emit ranges_changed();
}

void PlanCoordinates::keyPressEvent(QKeyEvent* event) {
  if (axes_.empty()) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Left:
      current_axis_ -= current_axis_ > 0 ? 1 : 0;
      return update();
    case Qt::Key_Right:
      current_axis_ += current_axis_ + 1 < axes_.size() ? 1 : 0;
      return update();
    case Qt::Key_Up:
    case Qt::Key_Down:
      return move_end(!event->modifiers().testFlag(Qt::ShiftModifier), event->key() == Qt::Key_Up);
    case Qt::Key_Delete:
    case Qt::Key_Backspace:
      ranges_.erase(current_axis_);
      break;
    case Qt::Key_Escape:
      ranges_.clear();
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return emit activated();
    default:
      return QWidget::keyPressEvent(event);
  }
  update();
  emit ranges_changed();
}

void PlanCoordinates::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

void PlanCoordinates::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace rehearse::gui
