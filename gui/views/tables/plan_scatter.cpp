#include "gui/views/tables/plan_scatter.hpp"

#include <QBoxLayout>
#include <QComboBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLegend>
#include <QLineSeries>
#include <QMouseEvent>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/models/tables/plan_words.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/labelled_box.hpp"
#include "gui/views/tables/plot.hpp"

namespace rehearse::gui {
namespace {

constexpr std::size_t kManyPoints = 500;
constexpr double kSmall = 5;  // diameter in pixels of a point in a group of more than kManyPoints

enum class Group { other, bound, too_large, front, own };
constexpr std::size_t kGroups = 5;

// Returns the shape and colour that identify the group. Groups declared last are drawn last, on top.
Dots dots_of(Group group, const QPalette& palette) {
  const bool dark = is_dark(palette);
  Dots dots;
  dots.border = palette.color(QPalette::Base);
  switch (group) {
    case Group::other:
      dots.name = "other plans";
      dots.colour = colour_of_run(5, dark);
      dots.size = 8;
      break;
    case Group::bound:
      dots.name = "not simulated";
      dots.shape = QScatterSeries::MarkerShapeRectangle;
      dots.colour = palette.color(QPalette::Base);
      dots.border = colour_of_run(5, dark);
      dots.size = 7;
      break;
    case Group::too_large:
      dots.name = "too large";
      dots.shape = QScatterSeries::MarkerShapeTriangle;
      dots.colour = colour_of_run(1, dark);
      break;
    case Group::front:
      dots.name = "Pareto front";
      dots.colour = colour_of_run(0, dark);
      break;
    case Group::own:
      dots.name = "own plan";
      dots.shape = QScatterSeries::MarkerShapeRotatedRectangle;
      dots.colour = colour_of_run(2, dark);
      dots.size = 14;
      break;
  }
  return dots;
}

// Returns a character that looks like the points of the group, for the legend.
QString sign_of(Group group) {
  static constexpr std::array<char16_t, kGroups> kSigns = {u'\u25cf', u'\u25a1', u'\u25b2', u'\u25cf',
                                                           u'\u25c6'};
  return QChar(kSigns[static_cast<std::size_t>(group)]);
}

}  // namespace

PlanScatter::PlanScatter(QWidget* parent) : QWidget(parent) {
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(2);
  auto* head = new QHBoxLayout;
  up_ = add_labelled_box(*head, this, tr("Sho&w"), tr("Figure on the vertical axis"));
  across_ = add_labelled_box(*head, this, tr("over"), tr("Figure on the horizontal axis"));
  logarithmic_ = add_command(*this,
                             {menu::plots,
                              tr("Logarithmic plans"),
                              {QKeySequence("Alt+X")},
                              tr("Use logarithmic axes for the plans")},
                             [] {});
  logarithmic_->setIconText(tr("Log"));
  logarithmic_->setCheckable(true);
  logarithmic_->setChecked(true);
  auto* button = new QToolButton(this);
  button->setDefaultAction(logarithmic_);
  button->setAccessibleName(tr("Logarithmic axes of the plans"));
  head->addWidget(button);
  head->addStretch(1);
  all->addLayout(head);
  legend_ = new QLabel(this);
  legend_->setAccessibleName(tr("Legend of the plans"));
  legend_->setTextFormat(Qt::RichText);
  legend_->setWordWrap(true);
  all->addWidget(legend_);
  plot_ = new PlotView(this);
  plot_->setAccessibleName(tr("Plans by two figures"));
  plot_->setAccessibleDescription(
      tr("Arrow keys go to the next plan, Shift adds it to the selection, Enter opens the selected plans"));
  plot_->viewport()->setMouseTracking(true);
  plot_->viewport()->installEventFilter(this);
  plot_->installEventFilter(this);
  all->addWidget(plot_, 1);
  connect(across_, &QComboBox::currentIndexChanged, this, &PlanScatter::draw);
  connect(up_, &QComboBox::currentIndexChanged, this, &PlanScatter::draw);
  connect(logarithmic_, &QAction::toggled, this, &PlanScatter::draw);
}

void PlanScatter::show_plans(std::shared_ptr<const PlanFile> file) {
  file_ = std::move(file);
  shown_.assign(file_->plans.size(), true);
  selected_.clear();
  const std::vector<PlanFigure> known = known_figures(*file_);
  const auto fill = [&](QComboBox& box, PlanFigure first) {
    const QSignalBlocker quiet(box);
    const QString was = box.currentText();
    box.clear();
    for (const PlanFigure figure : known) box.addItem(name_of(figure), static_cast<int>(figure));
    const int at = box.findText(was.isEmpty() ? name_of(first) : was);
    box.setCurrentIndex(std::max(0, at));
  };
  fill(*across_, PlanFigure::step_time);
  fill(*up_, PlanFigure::memory);
  draw();
}

void PlanScatter::set_shown(std::vector<bool> shown) {
  shown_ = std::move(shown);
  draw();
}

void PlanScatter::set_selected(std::vector<std::size_t> plans) {
  selected_ = std::move(plans);
  mark();
}

void PlanScatter::set_figures(PlanFigure across, PlanFigure up) {
  across_->setCurrentText(name_of(across));
  up_->setCurrentText(name_of(up));
}

QAbstractScrollArea& PlanScatter::plot() const {
  return *plot_;
}

PlanFigure PlanScatter::figure_of(const QComboBox& box) const {
  return static_cast<PlanFigure>(box.currentData().toInt());
}

void PlanScatter::draw() {
  const PlanFigure across = figure_of(*across_), up = figure_of(*up_);
  across_unit_ = unit_of(*file_, across);
  up_unit_ = unit_of(*file_, up);
  std::vector<double> xs, ys;
  for (const FoundPlan& plan : file_->plans) {  // including filtered-out plans, so that the axes stay put
    xs.push_back(value_of(plan, across) * across_unit_.factor);
    ys.push_back(value_of(plan, up) * up_unit_.factor);
  }
  const bool logarithmic = logarithmic_->isChecked();
  plot_->begin(plot_axis(title_of(*file_, across), logarithmic, std::move(xs)),
               plot_axis(title_of(*file_, up), logarithmic, std::move(ys)), palette());
  front_ = front_of(*file_, across, up, shown_);
  std::vector<QPointF> steps;
  for (const std::size_t plan : front_) {
    const QPointF at = *value_at(plan);
    if (!steps.empty()) steps.emplace_back(at.x(), steps.back().y());
    steps.push_back(at);
  }
  auto* line = new QLineSeries;
  line->setPen(QPen(colour_of_run(0, is_dark(palette())), 1.5));
  plot_->add(line, steps);
  plot_->hide_in_legend(line);
  draw_points();
  mark();
}

void PlanScatter::draw_points() {
  std::array<std::vector<QPointF>, kGroups> points;
  for (std::size_t i = 0; i < file_->plans.size(); ++i) {
    const std::optional<QPointF> at = value_at(i);
    if (!at || !shown_[i]) continue;
    const FoundPlan& plan = file_->plans[i];
    const bool on_front = std::find(front_.begin(), front_.end(), i) != front_.end();
    const Group group = plan.is_base      ? Group::own
                        : on_front        ? Group::front
                        : !plan.fits      ? Group::too_large
                        : !plan.simulated ? Group::bound
                                          : Group::other;
    points[static_cast<std::size_t>(group)].push_back(*at);
  }
  QStringList legend;
  for (std::size_t g = 0; g < kGroups; ++g) {
    if (points[g].empty()) continue;
    Dots dots = dots_of(static_cast<Group>(g), palette());
    if (points[g].size() > kManyPoints) dots.size = kSmall;
    dots.points = std::move(points[g]);
    dots.in_legend = false;
    // Keep each name on one line with its sign.
    const QColor ink = dots.colour == palette().color(QPalette::Base) ? dots.border : dots.colour;
    legend.prepend(
        QString("<span style=\"color:%1\">%2</span>&nbsp;%3")
            .arg(ink.name(), sign_of(static_cast<Group>(g)), QString(dots.name).replace(' ', "&nbsp;")));
    plot_->add(std::move(dots));
  }
  legend_->setText(legend.join(" &nbsp; "));
  plot_->chart()->legend()->hide();
}

void PlanScatter::mark() {
  std::vector<QPointF> rings;
  for (const std::size_t plan : selected_)
    if (const std::optional<QPointF> at = value_at(plan); at && shown_[plan]) rings.push_back(*at);
  plot_->set_rings(std::move(rings));
}

std::optional<QPointF> PlanScatter::value_at(std::size_t plan) const {
  if (plan >= file_->plans.size()) return std::nullopt;
  const double x = value_of(file_->plans[plan], figure_of(*across_)) * across_unit_.factor,
               y = value_of(file_->plans[plan], figure_of(*up_)) * up_unit_.factor;
  if (!std::isfinite(x) || !std::isfinite(y)) return std::nullopt;
  return QPointF(x, y);
}

std::optional<QPoint> PlanScatter::place_of(std::size_t plan) const {
  const std::optional<QPointF> value = value_at(plan);
  if (!value) return std::nullopt;
  return plot_->mapTo(this, plot_->place_of(*value).toPoint());
}

std::optional<std::size_t> PlanScatter::plan_near(QPointF place) const {
  std::optional<std::size_t> nearest;
  double distance = kPickDistance;
  for (std::size_t i = 0; i < file_->plans.size(); ++i) {
    const std::optional<QPointF> value = value_at(i);
    if (!value || !shown_[i]) continue;
    const double away = QLineF(plot_->place_of(*value), place).length();
    if (away >= distance) continue;
    distance = away;
    nearest = i;
  }
  return nearest;
}

bool PlanScatter::step(int key, bool beside_others) {
  const bool along_x = key == Qt::Key_Left || key == Qt::Key_Right;
  if (!along_x && key != Qt::Key_Up && key != Qt::Key_Down) return false;
  const bool back = key == Qt::Key_Left || key == Qt::Key_Down;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < file_->plans.size(); ++i)
    if (const std::optional<QPointF> value = value_at(i); value && shown_[i])
      order.emplace_back(along_x ? value->x() : value->y(), i);
  if (order.empty()) return true;
  std::sort(order.begin(), order.end());
  const auto now = std::find_if(order.begin(), order.end(), [&](const auto& one) {
    return !selected_.empty() && one.second == selected_.back();
  });
  auto next = order.begin();
  if (now != order.end())
    next = back ? (now == order.begin() ? now : now - 1) : (now + 1 == order.end() ? now : now + 1);
  if (next != now) emit picked(next->second, beside_others);
  return true;
}

bool PlanScatter::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress && watched == plot_) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (step(key->key(), key->modifiers().testFlag(Qt::ShiftModifier))) return true;
    if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
      emit activated();
      return true;
    }
  }
  if (watched != plot_->viewport()) return QWidget::eventFilter(watched, event);
  if (event->type() == QEvent::MouseMove || event->type() == QEvent::MouseButtonPress) {
    const auto* mouse = static_cast<QMouseEvent*>(event);
    const std::optional<std::size_t> nearest = plan_near(mouse->position());
    if (!nearest) {
      QToolTip::hideText();
    } else {
      QToolTip::showText(mouse->globalPosition().toPoint(), description_of(*file_, *nearest), plot_);
      if (event->type() == QEvent::MouseButtonPress)
        emit picked(*nearest, mouse->modifiers() & (Qt::ControlModifier | Qt::ShiftModifier));
    }
  } else if (event->type() == QEvent::MouseButtonDblClick) {
    emit activated();
  }
  return QWidget::eventFilter(watched, event);
}

void PlanScatter::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && plot_ != nullptr) draw();
}

}  // namespace rehearse::gui
