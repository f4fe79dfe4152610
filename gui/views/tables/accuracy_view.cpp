#include "gui/views/tables/accuracy_view.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QLabel>
#include <QLineSeries>
#include <QMouseEvent>
#include <QScatterSeries>
#include <QSplitter>
#include <QToolTip>
#include <algorithm>
#include <map>

#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/choose_file.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/placeholder.hpp"
#include "gui/views/tables/plot.hpp"
#include "models/text/text.hpp"

namespace rehearse::gui {
namespace {

constexpr double kBand = 0.1;
constexpr std::size_t kMostGroups = 8;

// Returns the group that a point is drawn in. Uses only the parts of the strategy that characterize it ("ring
// all-reduce" in "data 4, micro-batch 8, ring all-reduce, fp32"): the topology already shows the degrees.
std::string group_of(const AccuracyPoint& point) {
  if (!point.table.empty()) return point.table;
  std::string group;
  for (std::size_t at = 0; at < point.strategy.size();) {
    const std::size_t end = std::min(point.strategy.find(", ", at), point.strategy.size());
    const std::string part = point.strategy.substr(at, end - at);
    at = end + 2;
    const bool degrees = part.starts_with("data ") && part.find(" x pipeline") == std::string::npos;
    const bool detail = part.starts_with("micro-batch") || part == "fp32" || part == "bf16" ||
                        part == "fp16" || part == "tf32" || part == "fp64";
    if (degrees || detail) continue;
    std::string name = part.substr(0, part.find(" ("));
    if (name.starts_with("pipeline ")) name = "pipeline";
    if (name.find(" x pipeline ") != std::string::npos) name = "data x pipeline";
    if (name == "1F1B" || name == "GPipe") continue;
    group += (group.empty() ? "" : ", ") + name;
  }
  return group.empty() ? (point.topology.empty() ? "runs" : "one device") : group;
}

}  // namespace

AccuracyView::AccuracyView(Session& session, ViewState&, QWidget* parent)
    : QWidget(parent), session_(session) {
  setAccessibleName(tr("Predicted against measured"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  nothing_ = add_placeholder(
      *outer, tr("Open a measured run and a prediction of its scenario, or the CSV file written by\n"
                 "rehearse validate [RUN|FOLDER|TABLE]... --format csv"));
  told_ = new QWidget(this);
  outer->addWidget(told_, 1);
  auto* all = new QVBoxLayout(told_);
  all->setContentsMargins(8, 4, 4, 4);
  all->setSpacing(4);
  summary_ = new QLabel(told_);
  summary_->setWordWrap(true);
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  summary_->setAccessibleName(tr("Summary of the errors"));
  all->addWidget(summary_);
  split_ = new QSplitter(Qt::Vertical, told_);
  split_->setChildrenCollapsible(false);
  plot_ = new PlotView(split_);
  plot_->setAccessibleName(tr("Predicted against measured step times"));
  plot_->viewport()->setMouseTracking(true);
  plot_->viewport()->installEventFilter(this);
  rows_ = new TableView(split_);
  rows_->setAccessibleName(tr("Runs with their errors"));
  split_->addWidget(plot_);
  split_->addWidget(rows_);
  split_->setStretchFactor(0, 1);
  split_->setStretchFactor(1, 1);
  all->addWidget(split_, 1);

  add_command(*this,
              {menu::results,
               tr("Open a validation..."),
               {QKeySequence("Ctrl+Shift+V")},
               tr("Open a CSV file of predictions and measurements")},
              [this] {
                choose_file(*this, tr("validation"), tr("Validations (*.csv);;All files (*)"),
                            [this](const QString& path) { emit open_requested(path); });
              });
  close_ = add_command(*this,
                       {menu::results,
                        tr("Close the validation"),
                        {QKeySequence("Ctrl+Shift+Q")},
                        tr("Close the file and show the measured and predicted runs that are open")},
                       [this] { close_file(); });
  close_->setEnabled(false);

  connect(&session_, &Session::runs_changed, this, [this] { again_.changed(); });
  connect(&session_, &Session::run_changed, this, [this] { again_.changed(); });
  connect(rows_, &TableView::current_row_changed, this, &AccuracyView::mark);
  tell();
  again_.changed();
}

void AccuracyView::show_validation(const QString& path, const AccuracyTable& table) {
  of_file_ = table;
  path_ = path;
  close_->setEnabled(true);
  tell();
}

void AccuracyView::close_file() {
  of_file_ = {};
  path_.clear();
  close_->setEnabled(false);
  tell();
}

void AccuracyView::collect() {
  collecting_.ask([runs = session_.runs()](const std::atomic<bool>&) { return accuracy_of(runs); },
                  [this](const AccuracyTable& found) {
                    of_session_ = found;
                    tell();
                  });
}

void AccuracyView::tell() {
  points_ = of_session_.points;
  points_.insert(points_.end(), of_file_.points.begin(), of_file_.points.end());
  nothing_->setVisible(points_.empty() && path_.isEmpty());
  told_->setVisible(!nothing_->isVisibleTo(this));
  QString text =
      QString::fromStdString(points_.empty() ? "No line of the file could be read." : summary_of(points_));
  for (const std::string& problem : of_file_.problems)
    text += " " + tr("Left out: %1.").arg(QString::fromStdString(problem));
  summary_->setText(text);
  rows_->set(rows_of(points_));
  draw();
}

void AccuracyView::draw() {
  std::vector<double> all_s;
  for (const AccuracyPoint& point : points_) {
    all_s.push_back(point.measured_s);
    all_s.push_back(point.predicted_s);
  }
  const double longest_s = all_s.empty() ? 1 : *std::max_element(all_s.begin(), all_s.end());
  const Unit time = unit_of_seconds(longest_s);
  factor_ = time.factor;
  for (double& value : all_s) value *= time.factor;
  if (all_s.size() == 2) all_s = {all_s[0] / 2, all_s[0] * 2, all_s[1]};  // leaves room around a single run
  const PlotAxis across = plot_axis(tr("measured step time (%1)").arg(time.name), true, all_s);
  PlotAxis up = across;
  up.title = tr("predicted step time (%1)").arg(time.name);
  plot_->begin(across, up, palette());
  const auto line = [&](const QString& name, double factor, Qt::PenStyle style) {
    auto* series = new QLineSeries;
    series->setName(name);
    series->setPen(QPen(palette().color(QPalette::PlaceholderText), style == Qt::SolidLine ? 1.5 : 1, style));
    const double from = std::max(across.least, across.least / factor),
                 to = std::min(across.most, across.most / factor);
    plot_->add(series, {{from, from * factor}, {to, to * factor}});
    return series;
  };
  line(tr("equal"), 1, Qt::SolidLine);
  line(tr("10 % off"), 1 + kBand, Qt::DashLine);
  QLineSeries* below = line({}, 1 - kBand, Qt::DashLine);
  plot_->hide_in_legend(below);

  std::map<std::string, std::vector<QPointF>> groups;
  for (std::size_t i = 0; i < points_.size(); ++i) groups[group_of(points_[i])].push_back(value_of(i));
  constexpr std::array<QScatterSeries::MarkerShape, 5> kShapes = {
      QScatterSeries::MarkerShapeCircle, QScatterSeries::MarkerShapeRectangle,
      QScatterSeries::MarkerShapeTriangle, QScatterSeries::MarkerShapeRotatedRectangle,
      QScatterSeries::MarkerShapePentagon};
  std::size_t g = 0;
  for (auto& [name, places] : groups) {
    Dots dots;
    dots.name = QString::fromStdString(name);
    dots.shape = kShapes[g % kShapes.size()];
    dots.colour = colour_of_run(static_cast<int>(g), is_dark(palette()));
    dots.border = palette().color(QPalette::Base);
    dots.in_legend = g < kMostGroups;
    dots.points = std::move(places);
    plot_->add(std::move(dots));
    ++g;
  }
  mark(rows_->current_row());
}

void AccuracyView::mark(int row) {
  if (has_point(row))
    plot_->set_ring(value_of(static_cast<std::size_t>(row)));
  else
    plot_->set_ring({});
}

bool AccuracyView::has_point(int row) const {
  return row >= 0 && static_cast<std::size_t>(row) < points_.size();
}

QPointF AccuracyView::value_of(std::size_t row) const {
  return {points_[row].measured_s * factor_, points_[row].predicted_s * factor_};
}

std::optional<QPoint> AccuracyView::place_of(int row) const {
  if (!has_point(row)) return std::nullopt;
  return plot_->mapTo(this, plot_->place_of(value_of(static_cast<std::size_t>(row))).toPoint());
}

bool AccuracyView::eventFilter(QObject* watched, QEvent* event) {
  const bool pressed = event->type() == QEvent::MouseButtonPress;
  if (event->type() == QEvent::MouseMove || pressed) {
    const auto* mouse = static_cast<QMouseEvent*>(event);
    double distance = kPickDistance;
    int nearest = -1;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double away = QLineF(plot_->place_of(value_of(i)), mouse->position()).length();
      if (away >= distance) continue;
      distance = away;
      nearest = static_cast<int>(i);
    }
    if (nearest < 0) {
      QToolTip::hideText();
    } else {
      const AccuracyPoint& point = points_[static_cast<std::size_t>(nearest)];
      QString text =
          QString("%1: measured %2, predicted %3 (%4)")
              .arg(QString::fromStdString(point.run), QString::fromStdString(human_time_s(point.measured_s)),
                   QString::fromStdString(human_time_s(point.predicted_s)),
                   signed_percent_text(point.error()));
      for (const std::string& more : {point.topology, point.strategy})
        if (!more.empty()) text += "\n" + QString::fromStdString(more);
      QToolTip::showText(mouse->globalPosition().toPoint(), text, plot_);
      if (pressed) rows_->select_row(nearest);
    }
  }
  return QWidget::eventFilter(watched, event);
}

void AccuracyView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const Qt::Orientation orientation = width() > height() * 3 / 2 ? Qt::Horizontal : Qt::Vertical;
  if (orientation == split_->orientation() && split_->property("placed").toBool()) return;
  split_->setOrientation(orientation);
  split_->setSizes({550, 450});
  split_->setProperty("placed", true);
}

void AccuracyView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && plot_ != nullptr) draw();
}

}  // namespace rehearse::gui
