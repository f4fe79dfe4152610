#include "gui/views/scaling_view.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QComboBox>
#include <QFileInfo>
#include <QLabel>
#include <QLegend>
#include <QLineSeries>
#include <QMouseEvent>
#include <QSplitter>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>

#include "gui/views/appearance.hpp"
#include "gui/views/choose_file.hpp"
#include "gui/views/command.hpp"
#include "gui/views/labelled_box.hpp"
#include "gui/views/placeholder.hpp"
#include "gui/views/plot.hpp"

namespace rehearse::gui {
namespace {

constexpr double kNear = 14;           // pixels from a point within which the mouse is on it
constexpr std::size_t kFewMarks = 10;  // values of the horizontal axis that are marked themselves
constexpr std::size_t kMostCurves = 24;
constexpr std::size_t kMostMarked = 2000;  // points that are painted themselves, beside their lines
constexpr std::size_t kMostDrawn = 4000, kLeastDrawn = 16;  // of all curves, of each
constexpr std::size_t kMostAtOnce = 5000;  // points whose curves are made while the window waits

std::vector<QPointF> places_of(const std::vector<CurvePoint>& points) {
  std::vector<QPointF> places;
  for (const CurvePoint& point : points) places.emplace_back(point.x, point.y);
  return places;
}

}  // namespace

// All that takes long to make of many points.
struct ScalingView::Drawing {
  std::vector<Curve> curves;
  std::size_t points = 0;  // of all of them
  PlotAxis across, up;
  std::vector<std::vector<QPointF>> places;  // by curve, of as many points as are drawn
  std::vector<QPointF> ideal;
};

ScalingView::ScalingView(Session&, ViewState&, QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Scaling"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  nothing_ = add_placeholder(*outer, tr("Open the CSV file of a sweep to see its curves. It is written by\n"
                                        "rehearse sweep SCENARIO --vary strategy.data=1..8 --out FILE.csv"));
  told_ = new QWidget(this);
  outer->addWidget(told_, 1);
  auto* all = new QVBoxLayout(told_);
  all->setContentsMargins(4, 4, 4, 4);
  all->setSpacing(4);

  auto* head = new QHBoxLayout;
  figure_ = add_labelled_box(*head, told_, tr("&Show"), tr("Figure on the vertical axis"));
  axis_ = add_labelled_box(*head, told_, tr("o&ver"), tr("What stands on the horizontal axis"));
  for (QComboBox* box : {figure_, axis_}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (const std::string_view name : kSweepFigureNames)
    figure_->addItem(QString::fromUtf8(name.data(), static_cast<int>(name.size())));
  figure_->setCurrentIndex(static_cast<int>(SweepFigure::samples));
  head->addSpacing(8);
  log_x_ = make_switch(tr("Logarithmic, across"), tr("Alt+X"), tr("Logarithmic horizontal axis"), true);
  log_y_ = make_switch(tr("Logarithmic, up"), tr("Alt+Y"), tr("Logarithmic vertical axis"), true);
  ideal_ =
      make_switch(tr("Ideal scaling"), tr("Alt+I"),
                  tr("Dashed: if every device did as much as in the first point of the first curve"), true);
  for (QAction* action : {log_x_, log_y_, ideal_}) {
    auto* button = new QToolButton(told_);
    button->setDefaultAction(action);
    button->setAccessibleName(action->text());
    head->addWidget(button);
  }
  head->addStretch(1);
  all->addLayout(head);
  problems_ = new QLabel(told_);
  problems_->setWordWrap(true);
  problems_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  problems_->setAccessibleName(tr("What could not be read"));
  all->addWidget(problems_);

  split_ = new QSplitter(Qt::Vertical, told_);
  split_->setChildrenCollapsible(false);
  plot_ = new PlotView(split_);
  plot_->setAccessibleName(tr("Curves of the sweep"));
  plot_->setMouseTracking(true);
  plot_->viewport()->setMouseTracking(true);
  plot_->viewport()->installEventFilter(this);
  points_ = new TableView(split_);
  points_->setAccessibleName(tr("Points of the sweep"));
  split_->addWidget(plot_);
  split_->addWidget(points_);
  split_->setStretchFactor(0, 3);
  split_->setStretchFactor(1, 2);
  all->addWidget(split_, 1);

  add_command(*this,
              {menu::results,
               tr("Open a sweep..."),
               {QKeySequence("Ctrl+Shift+W")},
               tr("Open the CSV file of a sweep as curves")},
              [this] {
                choose_file(*this, tr("sweep"), tr("Sweeps (*.csv);;All files (*)"),
                            [this](const QString& path) { emit open_requested(path); });
              });

  connect(axis_, &QComboBox::currentIndexChanged, this, &ScalingView::draw);
  connect(figure_, &QComboBox::currentIndexChanged, this, &ScalingView::draw);
  connect(points_, &TableView::current_row_changed, this, &ScalingView::mark);
  told_->hide();
}

QAction* ScalingView::make_switch(const QString& text, const QString& key, const QString& tip, bool on) {
  QAction* action = add_command(*this, {menu::plots, text, {QKeySequence(key)}, tip}, [] {});
  action->setCheckable(true);
  action->setChecked(on);
  connect(action, &QAction::toggled, this, &ScalingView::draw);
  return action;
}

void ScalingView::show_sweep(const QString& path, ReadSweep read) {
  const QString was = axis_->currentText();
  sweep_ = std::make_shared<const SweepTable>(std::move(read.sweep));
  curves_.clear();
  path_ = path;
  axis_->blockSignals(true);
  axis_->clear();
  for (const std::string& axis : sweep_->numeric_axes()) axis_->addItem(QString::fromStdString(axis));
  if (const int known = axis_->findText(was); known >= 0) axis_->setCurrentIndex(known);
  axis_->blockSignals(false);
  QString text;
  for (const std::string& problem : sweep_->problems)
    text += (text.isEmpty() ? "" : "; ") + QString::fromStdString(problem);
  problems_->setText(text.isEmpty() ? text : tr("Not read: %1").arg(text));
  problems_->setVisible(!text.isEmpty());
  points_->set(std::move(read.rows));
  nothing_->hide();
  told_->show();
  setToolTip({});
  plot_->setToolTip({});
  draw();
}

void ScalingView::set_axis(const QString& axis) {
  axis_->setCurrentText(axis);
}
void ScalingView::set_figure(SweepFigure figure) {
  figure_->setCurrentIndex(static_cast<int>(figure));
}

void ScalingView::draw() {
  const auto make = [sweep = sweep_, axis = axis_->currentText(), figure = figure_->currentText(),
                     number = figure_->currentIndex(), ideal = ideal_->isChecked(),
                     log_x = log_x_->isChecked(), log_y = log_y_->isChecked()] {
    Drawing made;
    const auto kind = static_cast<SweepFigure>(number);
    made.curves = curves_of(*sweep, axis.toStdString(), kind);
    std::vector<CurvePoint> line;
    if (ideal && !made.curves.empty()) line = ideal_curve(*sweep, made.curves.front(), kind);
    std::vector<double> xs, ys;
    for (const Curve& curve : made.curves)
      for (const CurvePoint& point : curve.points) {
        xs.push_back(point.x);
        ys.push_back(point.y);
      }
    made.points = xs.size();
    for (const CurvePoint& point : line) ys.push_back(point.y);
    made.across = plot_axis(axis, log_x, std::move(xs), kFewMarks);
    made.up = plot_axis(figure, log_y, std::move(ys));
    const std::size_t most =
        made.points <= kMostDrawn
            ? made.points
            : std::max(kLeastDrawn, kMostDrawn / std::max<std::size_t>(1, made.curves.size()));
    made.ideal = places_of(course_of(line, most));
    for (const Curve& curve : made.curves) made.places.push_back(places_of(course_of(curve.points, most)));
    return made;
  };
  if (sweep_->points.size() <= kMostAtOnce) {
    drawing_.cancel();
    show_drawing(make());
  } else {
    drawing_.ask([make](const std::atomic<bool>&) { return make(); },
                 [this](Drawing made) { show_drawing(std::move(made)); });
  }
}

void ScalingView::show_drawing(Drawing made) {
  curves_ = std::move(made.curves);
  plot_->begin(made.across, made.up, palette());
  const bool dark = is_dark(palette());
  if (!made.ideal.empty()) {
    auto* line = new QLineSeries;
    line->setName(tr("ideal"));
    QPen pen(palette().color(QPalette::PlaceholderText), 1.5, Qt::DashLine);
    line->setPen(pen);
    plot_->add(line, made.ideal);
  }
  for (std::size_t i = 0; i < curves_.size(); ++i) {
    auto* line = new QLineSeries;
    line->setName(curves_[i].name.empty() ? made.up.title : QString::fromStdString(curves_[i].name));
    constexpr std::array<Qt::PenStyle, 4> kStyles = {Qt::SolidLine, Qt::DashLine, Qt::DotLine,
                                                     Qt::DashDotLine};
    line->setPen(QPen(colour_of_run(static_cast<int>(i % 6), dark), 2, kStyles[i / 6 % kStyles.size()]));
    line->setPointsVisible(made.points <= kMostMarked);
    line->setMarkerSize(4.5);
    plot_->add(line, made.places[i]);
    // So many that nobody could tell them apart are not told.
    if (i >= kMostCurves) plot_->hide_in_legend(line);
  }
  plot_->chart()->legend()->setVisible(curves_.size() + (made.ideal.empty() ? 0 : 1) > 1);
  mark(points_->current_row());
}

void ScalingView::mark(int row) {
  plot_->set_ring(value_of(row));
}

std::optional<QPointF> ScalingView::value_of(int row) const {
  for (const Curve& curve : curves_)
    for (const CurvePoint& point : curve.points)
      if (row >= 0 && point.row == static_cast<std::size_t>(row)) return QPointF(point.x, point.y);
  return std::nullopt;
}

std::optional<QPoint> ScalingView::place_of(int row) const {
  const std::optional<QPointF> value = value_of(row);
  if (!value) return std::nullopt;
  return plot_->mapTo(this, plot_->place_of(*value).toPoint());
}

bool ScalingView::eventFilter(QObject* watched, QEvent* event) {
  const bool pressed = event->type() == QEvent::MouseButtonPress;
  if (event->type() == QEvent::MouseMove || pressed) {
    const auto* mouse = static_cast<QMouseEvent*>(event);
    const CurvePoint* nearest = nullptr;
    double distance = kNear;
    const double from = plot_->value_at(mouse->position() - QPointF(kNear, 0)).x(),
                 to = plot_->value_at(mouse->position() + QPointF(kNear, 0)).x();
    for (const Curve& curve : curves_)
      for (auto point = std::lower_bound(curve.points.begin(), curve.points.end(), from,
                                         [](const CurvePoint&a, double x) { return a.x < x; });
           point != curve.points.end() && point->x <= to; ++point) {
        const double away = QLineF(plot_->place_of({point->x, point->y}), mouse->position()).length();
        if (away >= distance) continue;
        distance = away;
        nearest = &*point;
      }
    if (nearest == nullptr) {
      QToolTip::hideText();
    } else {
      QToolTip::showText(mouse->globalPosition().toPoint(),
                         QString::fromStdString(description_of(*sweep_, sweep_->points[nearest->row])),
                         plot_);
      if (pressed) points_->select_row(static_cast<int>(nearest->row));
    }
  }
  return QWidget::eventFilter(watched, event);
}

void ScalingView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const Qt::Orientation orientation = width() > 2 * height() ? Qt::Horizontal : Qt::Vertical;
  if (orientation == split_->orientation() && split_->property("placed").toBool()) return;
  split_->setOrientation(orientation);
  split_->setSizes({550, 450});
  split_->setProperty("placed", true);
}

void ScalingView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && !path_.isEmpty()) draw();
}

}  // namespace rehearse::gui
