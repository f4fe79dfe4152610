#include "gui/views/tables/plot.hpp"

#include <QCategoryAxis>
#include <QGraphicsLayout>
#include <QLegend>
#include <QLegendMarker>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostMarks = 9;
constexpr double kRingRadius = 8.5, kRingWidth = 2;  // pixels
constexpr int kLegend = 220;                         // greatest width in pixels of a legend at the side

// Returns powers of ten, or more digits per power of ten where there would be fewer than four marks.
std::vector<double> logarithmic_marks(double least, double most) {
  const std::vector<std::vector<double>> kSteps = {{1},
                                                   {1, 3},
                                                   {1, 2, 5},
                                                   {1, 1.5, 2, 3, 5, 7},
                                                   {1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}};
  std::vector<double> marks;
  for (const std::vector<double>& steps : kSteps) {
    std::vector<double> found;
    const int first = static_cast<int>(std::floor(std::log10(least))) - 1;
    const int last = static_cast<int>(std::ceil(std::log10(most))) + 1;
    for (int power = first; power <= last; ++power)
      for (const double step : steps) {
        const double mark = step * std::pow(10, power);
        if (mark >= least * (1 - 1e-9) && mark <= most * (1 + 1e-9)) found.push_back(mark);
      }
    if (found.size() > kMostMarks && !marks.empty()) break;
    marks = std::move(found);
    if (marks.size() >= 4) break;
  }
  return marks;
}

std::vector<double> linear_marks(double least, double most) {
  std::vector<double> marks;
  const double rough = (most - least) / 6;
  if (!(rough > 0)) return marks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough / power < 1.5   ? 1
                               : rough / power < 3.5 ? 2
                               : rough / power < 7.5 ? 5
                                                     : 10);
  for (double i = std::ceil(least / step - 1e-9); i * step <= most * (1 + 1e-9); ++i)
    marks.push_back(i * step);
  return marks;
}

QString mark_text(double value) {
  const double rounded = std::stod(QString::number(value, 'g', 4).toStdString());
  QString text =
      QString::fromStdString(std::abs(rounded) >= 1e4 ? with_prefix(rounded) : with_digits(rounded, 4));
  if (text.contains('.')) {
    const qsizetype unit = text.indexOf(' ');
    QString digits = unit < 0 ? text : text.left(unit);
    while (digits.endsWith('0')) digits.chop(1);
    if (digits.endsWith('.')) digits.chop(1);
    text = digits + (unit < 0 ? QString() : text.mid(unit));
  }
  return text;
}

// Returns the corners of a marker whose points are `radius` from its centre; empty for a circle.
QPolygonF outline_of(QScatterSeries::MarkerShape shape, double radius) {
  int corners = 0;
  double first = -90, out = 1;  // angle in degrees from the right, clockwise; factor of the radius
  switch (shape) {
    case QScatterSeries::MarkerShapeRectangle:
      corners = 4;
      first = 45;
      out = std::sqrt(2);
      break;
    case QScatterSeries::MarkerShapeRotatedRectangle:
      corners = 4;
      break;
    case QScatterSeries::MarkerShapeTriangle:
      corners = 3;
      out = 1.2;
      break;
    case QScatterSeries::MarkerShapePentagon:
      corners = 5;
      break;
    default:
      break;
  }
  QPolygonF outline;
  for (int i = 0; i < corners; ++i) {
    const double angle = qDegreesToRadians(first + 360.0 * i / corners);
    outline << QPointF(radius * out * std::cos(angle), radius * out * std::sin(angle));
  }
  return outline;
}

QCategoryAxis* qt_axis(const PlotAxis& axis, const QPalette& palette) {
  auto* made = new QCategoryAxis;
  made->setLabelsPosition(QCategoryAxis::AxisLabelsPositionOnValue);
  made->setRange(axis.on_axis(axis.least), axis.on_axis(axis.most));
  made->setStartValue(axis.on_axis(axis.least));
  for (std::size_t i = 0; i < axis.marks.size(); ++i)
    made->append(axis.names.isEmpty() ? mark_text(axis.marks[i]) : axis.names[static_cast<qsizetype>(i)],
                 axis.on_axis(axis.marks[i]));
  made->setTitleText(axis.title);
  const QColor text = palette.color(QPalette::WindowText);
  made->setTitleBrush(text);
  made->setLabelsBrush(text);
  QColor line = text;
  line.setAlpha(45);
  made->setGridLinePen(QPen(line, 1));
  line.setAlpha(140);
  made->setLinePen(QPen(line, 1));
  QFont font;
  made->setLabelsFont(font);
  made->setTitleFont(font);
  made->setTruncateLabels(false);
  return made;
}

}  // namespace

double PlotAxis::on_axis(double value) const {
  return logarithmic ? std::log10(std::max(value, 1e-300)) : value;
}

double PlotAxis::value_at(double place) const {
  return logarithmic ? std::pow(10, place) : place;
}

PlotAxis plot_axis(const QString& title, bool logarithmic, std::vector<double> values, std::size_t few) {
  PlotAxis axis;
  axis.title = title;
  axis.logarithmic = logarithmic;
  std::erase_if(values, [&](double value) { return !std::isfinite(value) || (logarithmic && value <= 0); });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.empty()) {
    axis.least = logarithmic ? 1 : 0;
    axis.most = 10;
  } else if (logarithmic) {
    const double room = std::pow(values.back() / values.front(), 0.06) * 1.03;
    axis.least = values.front() / room;
    axis.most = values.back() * room;
  } else {
    axis.least = std::min(0.0, values.front());
    axis.most =
        values.back() > axis.least ? axis.least + (values.back() - axis.least) * 1.06 : axis.least + 1;
  }
  const bool themselves = !values.empty() && values.size() <= few;
  axis.marks = themselves    ? values
               : logarithmic ? logarithmic_marks(axis.least, axis.most)
                             : linear_marks(axis.least, axis.most);
  // A logarithmic axis with a small span contains few of these marks, so mark it linearly.
  if (logarithmic && !themselves && axis.marks.size() < 3) axis.marks = linear_marks(axis.least, axis.most);
  if (themselves && !logarithmic) {  // drop marks whose labels would overlap
    double last = -std::numeric_limits<double>::infinity();
    std::erase_if(axis.marks, [&](double mark) {
      const bool close = mark - last < (axis.most - axis.least) / 14;
      if (!close) last = mark;
      return close;
    });
  }
  return axis;
}

PlotAxis plot_axis(const QString& title, const QStringList& words) {
  PlotAxis axis;
  axis.title = title;
  axis.least = 0.5;
  axis.most = static_cast<double>(words.size()) + 0.5;
  // With many words, label only every second, third, ... one.
  const qsizetype each = words.size() / static_cast<qsizetype>(kMostMarks + 1) + 1;
  for (qsizetype i = 0; i < words.size(); i += each) {
    axis.marks.push_back(static_cast<double>(i + 1));
    axis.names << words[i];
  }
  return axis;
}

PlotView::PlotView(QWidget* parent) : QChartView(parent) {
  setRenderHint(QPainter::Antialiasing);
  setFrameShape(QFrame::NoFrame);
  setMinimumSize(200, 140);
  chart()->setMargins(QMargins(2, 2, 6, 2));
  chart()->layout()->setContentsMargins(0, 0, 0, 0);
  chart()->setBackgroundRoundness(0);
  chart()->setAnimationOptions(QChart::NoAnimation);
}

void PlotView::begin(const PlotAxis& horizontal, const PlotAxis& vertical, const QPalette& palette) {
  horizontal_ = horizontal;
  vertical_ = vertical;
  dots_.clear();
  rings_.clear();
  ring_colour_ = palette.color(QPalette::WindowText);
  chart()->removeAllSeries();
  for (QAbstractAxis* axis : chart()->axes()) {
    chart()->removeAxis(axis);
    delete axis;
  }
  setBackgroundBrush(palette.color(QPalette::Window));
  chart()->setBackgroundBrush(palette.color(QPalette::Window));
  chart()->setBackgroundPen(Qt::NoPen);
  chart()->setPlotAreaBackgroundBrush(palette.color(QPalette::Base));
  chart()->setPlotAreaBackgroundVisible(true);
  chart()->legend()->setLabelColor(palette.color(QPalette::WindowText));
  chart()->legend()->setFont(font());
  chart()->legend()->setMarkerShape(QLegend::MarkerShapeFromSeries);
  chart()->addAxis(qt_axis(horizontal, palette), Qt::AlignBottom);
  chart()->addAxis(qt_axis(vertical, palette), Qt::AlignLeft);
}

void PlotView::resizeEvent(QResizeEvent* event) {
  chart()->legend()->setAlignment(width() > 2 * kLegend ? Qt::AlignRight : Qt::AlignTop);
  QChartView::resizeEvent(event);
}

void PlotView::add(QXYSeries* series, const std::vector<QPointF>& points) {
  QList<QPointF> placed;
  for (const QPointF& point : points) placed << on_axes(point);
  series->replace(placed);
  chart()->addSeries(series);
  for (QAbstractAxis* axis : chart()->axes()) series->attachAxis(axis);
}

void PlotView::add(Dots dots) {
  auto* told = new QScatterSeries;
  told->setName(dots.name);
  told->setMarkerShape(dots.shape);
  told->setMarkerSize(dots.size);
  told->setColor(dots.colour);
  told->setBorderColor(dots.border);
  add(told, {});
  if (!dots.in_legend) hide_in_legend(told);
  for (QPointF& point : dots.points) point = on_axes(point);
  dots_.push_back(std::move(dots));
}

void PlotView::hide_in_legend(QXYSeries* series) {
  for (QLegendMarker* marker : chart()->legend()->markers(series)) marker->setVisible(false);
}

void PlotView::set_rings(std::vector<QPointF> values) {
  rings_ = std::move(values);
  viewport()->update();
}

void PlotView::drawForeground(QPainter* painter, const QRectF& part) {
  QChartView::drawForeground(painter, part);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setClipRect(
      QRectF(chart()->mapToScene(chart()->plotArea().topLeft()), chart()->plotArea().size()));
  const QTransform to_scene = axes_to_scene();
  for (const Dots& dots : dots_) {
    painter->setPen(dots.border);
    painter->setBrush(dots.colour);
    const QPolygonF outline = outline_of(dots.shape, dots.size / 2);
    const QPointF corner(dots.size / 2, dots.size / 2);
    for (const QPointF& point : dots.points) {
      const QPointF at = to_scene.map(point);
      if (outline.isEmpty())
        painter->drawEllipse(QRectF(at - corner, at + corner));
      else
        painter->drawPolygon(outline.translated(at));
    }
  }
  painter->setPen(QPen(ring_colour_, kRingWidth));
  painter->setBrush(Qt::NoBrush);
  for (const QPointF& ring : rings_)
    painter->drawEllipse(to_scene.map(on_axes(ring)), kRingRadius, kRingRadius);
  painter->restore();
}

QPointF PlotView::on_axes(QPointF value) const {
  return {horizontal_.on_axis(value.x()), vertical_.on_axis(value.y())};
}

QTransform PlotView::axes_to_scene() const {
  const QRectF area = chart()->plotArea();
  const QPointF least = on_axes({horizontal_.least, vertical_.least}),
                most = on_axes({horizontal_.most, vertical_.most});
  QTransform to_chart;
  to_chart.translate(area.left(), area.bottom());
  to_chart.scale(area.width() / (most.x() - least.x()), -area.height() / (most.y() - least.y()));
  to_chart.translate(-least.x(), -least.y());
  return to_chart * chart()->sceneTransform();
}

QPointF PlotView::place_of(QPointF value) const {
  return viewportTransform().map(axes_to_scene().map(on_axes(value)));
}

QPointF PlotView::value_at(QPointF place) const {
  const QPointF found = (axes_to_scene() * viewportTransform()).inverted().map(place);
  return {horizontal_.value_at(found.x()), vertical_.value_at(found.y())};
}

}  // namespace rehearse::gui
