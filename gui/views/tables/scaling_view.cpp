#include "gui/views/tables/scaling_view.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLegend>
#include <QLineSeries>
#include <QMouseEvent>
#include <QSaveFile>
#include <QSplitter>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>

#include "gui/models/scenario/scenario_difference.hpp"
#include "gui/models/tables/sweep_setup.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/choose_file.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/labelled_box.hpp"
#include "gui/views/parts/placeholder.hpp"
#include "gui/views/tables/plot.hpp"
#include "gui/views/tables/sweep_setup.hpp"

namespace rehearse::gui {
namespace {

// Up to this many distinct values of the horizontal axis get their own marks.
constexpr std::size_t kFewMarks = 10;
constexpr std::size_t kMostCurves = 24;
constexpr std::size_t kMostMarked = 2000;  // up to this many points get markers in addition to their lines
// Points drawn of all curves together; of each curve.
constexpr std::size_t kMostDrawn = 4000, kLeastDrawn = 16;
// Up to this many points, curves are computed without a background thread.
constexpr std::size_t kMostInForeground = 5000;

std::vector<QPointF> places_of(const std::vector<CurvePoint>& points) {
  std::vector<QPointF> places;
  for (const CurvePoint& point : points) places.emplace_back(point.x, point.y);
  return places;
}

}  // namespace

// The parts of a plot that take long to compute for many points.
struct ScalingView::Drawing {
  std::vector<Curve> curves;
  std::size_t points = 0;  // total of all curves
  PlotAxis across, up;
  std::vector<std::vector<QPointF>> places;  // indexed by curve, reduced to the points that are drawn
  std::vector<QPointF> ideal;
};

ScalingView::~ScalingView() = default;

ScalingView::ScalingView(Session& session, ViewState&, QWidget* parent) : QWidget(parent), session_(session) {
  setAccessibleName(tr("Scaling"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(0);
  setup_ = new SweepSetup(this);
  outer->addWidget(setup_);
  nothing_ =
      add_placeholder(*outer, tr("Choose what varies and run the sweep, or open the CSV file written by\n"
                                 "rehearse sweep SCENARIO --vary strategy.data=1..8 --out FILE.csv"));
  told_ = new QWidget(this);
  outer->addWidget(told_, 1);
  auto* all = new QVBoxLayout(told_);
  all->setContentsMargins(4, 4, 4, 4);
  all->setSpacing(4);

  auto* head = new QHBoxLayout;
  figure_ = add_labelled_box(*head, told_, tr("&Show"), tr("Figure on the vertical axis"));
  axis_ = add_labelled_box(*head, told_, tr("o&ver"), tr("Quantity on the horizontal axis"));
  for (QComboBox* box : {figure_, axis_}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (const std::string_view name : kSweepFigureNames)
    figure_->addItem(QString::fromUtf8(name.data(), static_cast<int>(name.size())));
  figure_->setCurrentIndex(static_cast<int>(SweepFigure::samples));
  head->addSpacing(8);
  log_x_ = make_switch(tr("Logarithmic, across"), tr("Alt+X"), tr("Use a logarithmic horizontal axis"), true);
  log_y_ = make_switch(tr("Logarithmic, up"), tr("Alt+Y"), tr("Use a logarithmic vertical axis"), true);
  ideal_ = make_switch(
      tr("Ideal scaling"), tr("Alt+I"),
      tr("Show, dashed, the scaling if every device did as much as at the first point of the first curve"),
      true);
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
  problems_->setAccessibleName(tr("Lines that could not be read"));
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
               tr("Open the CSV file of a sweep and show its curves")},
              [this] {
                choose_file(*this, tr("sweep"), tr("Sweeps (*.csv);;All files (*)"),
                            [this](const QString& path) { emit open_requested(path); });
              });

  save_ = add_command(*this,
                      {menu::results,
                       tr("Save the sweep..."),
                       {QKeySequence("Ctrl+Alt+W")},
                       tr("Write the points that are shown to a CSV file")},
                      [this] { choose_where_to_save(); });
  save_->setIconText(tr("Save..."));
  save_->setEnabled(false);
  QAction* open_point =
      add_command(*this,
                  {menu::trials,
                   tr("Open the &point as a run"),
                   {QKeySequence("Ctrl+Return")},
                   tr("Predict the current point of the sweep and show it on the timeline")},
                  [this] { this->open_point(points_->current_row()); });
  open_point->setIconText(tr("Open point"));
  for (QAction* action : {save_, open_point}) setup_->add_button(action);
  connect(points_, &TableView::row_activated, this, &ScalingView::open_point);
  connect(setup_, &SweepSetup::grown, this, [this](const QString& path) { read_grown(path, false); });
  connect(setup_, &SweepSetup::ended, this, [this](const RunOutcome& outcome) {
    if (!outcome.path.isEmpty()) read_grown(outcome.path, true);
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
  growing_.cancel();
  swept_.reset();
  sweep_ = std::make_shared<const SweepTable>(std::move(read.sweep));
  curves_.clear();
  path_ = path;
  axis_->blockSignals(true);
  axis_->clear();
  for (const std::string& axis : sweep_->axes()) axis_->addItem(QString::fromStdString(axis));
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
  save_->setEnabled(true);
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
    QStringList words;
    for (const std::string& word : sweep->words_of(axis.toStdString())) words << QString::fromStdString(word);
    made.across = words.isEmpty() ? plot_axis(axis, log_x, std::move(xs), kFewMarks) : plot_axis(axis, words);
    made.up = plot_axis(figure, log_y, std::move(ys));
    const std::size_t most =
        made.points <= kMostDrawn
            ? made.points
            : std::max(kLeastDrawn, kMostDrawn / std::max<std::size_t>(1, made.curves.size()));
    made.ideal = places_of(course_of(line, most));
    for (const Curve& curve : made.curves) made.places.push_back(places_of(course_of(curve.points, most)));
    return made;
  };
  if (sweep_->points.size() <= kMostInForeground) {
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
    // Curves beyond the limit would be indistinguishable, so the legend omits them.
    if (i >= kMostCurves) plot_->hide_in_legend(line);
  }
  plot_->chart()->legend()->setVisible(curves_.size() + (made.ideal.empty() ? 0 : 1) > 1);
  mark(points_->current_row());
}

// Rereads the growing file, but spends only a fraction of the time on it.
void ScalingView::read_grown(const QString& path, bool last) {
  constexpr qint64 kOften_ms = 300, kShare = 5;
  if (!last && (growing_.busy() ||
                (since_read_.isValid() && since_read_.elapsed() < std::max(kOften_ms, kShare * read_ms_))))
    return;
  struct Grown {
    ReadSweep sweep;
    qint64 took_ms;
  };
  growing_.ask(
      [path](const std::atomic<bool>&) {
        QElapsedTimer clock;
        clock.start();
        Grown read{read_growing_sweep(path.toStdString()), 0};
        read.took_ms = clock.elapsed();
        return read;
      },
      [this, path, request = setup_->swept()](Grown read) {
        read_ms_ = read.took_ms;
        since_read_.start();
        const int row = path == path_ ? points_->current_row() : -1;
        const std::string number =
            row < 0 ? std::string() : sweep_->points[static_cast<std::size_t>(row)].number;
        show_sweep(path, std::move(read.sweep));
        swept_ = std::make_unique<RunRequest>(request);
        for (std::size_t i = 0; row >= 0 && i < sweep_->points.size(); ++i)
          if (sweep_->points[i].number == number) points_->select_row(static_cast<int>(i));
      });
}

bool ScalingView::busy() const {
  return setup_->busy() || growing_.busy();
}

void ScalingView::open_point(int row) {
  if (row < 0 || static_cast<std::size_t>(row) >= sweep_->points.size()) return;
  const SweepPoint& point = sweep_->points[static_cast<std::size_t>(row)];
  if (!swept_)
    return emit message(tr(
        "The scenario of these points is unknown; only points of sweeps that were run here can be opened"));
  if (!point.ok()) return emit message(QString::fromStdString(point.error));
  QStringList settings = swept_->settings;
  for (std::size_t k = 0; k < sweep_->varied.size(); ++k)
    settings << QString::fromStdString(sweep_->varied[k] + "=" + point.varied[k]);
  const QString name = swept_->name + ", " + settings_name(settings);
  for (const Session::RunPointer& run : session_.runs())
    if (run->name == name.toStdString()) return session_.set_current(run->id);
  emit run_requested(swept_->text, name, swept_->folder, settings);
}

QString ScalingView::save(const QString& path) {
  QFile from(path_);
  QSaveFile into(path);
  if (!from.open(QIODevice::ReadOnly)) return tr("%1: cannot be read: %2").arg(path_, from.errorString());
  if (!into.open(QIODevice::WriteOnly) || into.write(from.readAll()) < 0 || !into.commit())
    return tr("%1: cannot be written: %2").arg(path, into.errorString());
  emit saved(path);
  return {};
}

void ScalingView::choose_where_to_save() {
  QString path = QFileDialog::getSaveFileName(this, tr("Save the sweep"), QFileInfo(path_).fileName(),
                                              tr("Sweeps (*.csv)"));
  if (path.isEmpty()) return;
  if (QFileInfo(path).suffix().isEmpty()) path += ".csv";
  const QString why = save(path);
  emit message(why.isEmpty() ? tr("%1 was written").arg(path) : why);
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
    double distance = kPickDistance;
    const double from = plot_->value_at(mouse->position() - QPointF(kPickDistance, 0)).x(),
                 to = plot_->value_at(mouse->position() + QPointF(kPickDistance, 0)).x();
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
      if (pressed) {
        const int row = static_cast<int>(nearest->row);
        points_->select_row(row);
        open_point(row);
        return true;
      }
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
