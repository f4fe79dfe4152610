// Provides plots with axes at round values, linear or logarithmic, in the window's colours.
#pragma once

#include <QChart>
#include <QChartView>
#include <QPalette>
#include <QScatterSeries>
#include <QStringList>
#include <QXYSeries>
#include <optional>
#include <vector>

namespace rehearse::gui {

inline constexpr double kPickDistance = 14;  // pixels; the mouse picks a point of a plot within this distance

// An axis of a plot. Values are drawn at on_axis(value): a logarithmic axis is a linear axis of logarithms
// whose marks are labelled with the values, so that it has round marks even if it spans less than a power of
// ten.
struct PlotAxis {
  QString title;
  bool logarithmic = false;
  double least = 0, most = 1;  // in values, with a margin
  std::vector<double> marks;
  QStringList names;  // labels of the marks; empty to print their values

  double on_axis(double value) const;
  double value_at(double place) const;  // the inverse of on_axis()
};

// Returns an axis with room for `values`. Its marks are round numbers, or the values themselves if there are
// at most `few` distinct ones. Linear axes include 0. Logarithmic axes ignore values that are not positive.
PlotAxis plot_axis(const QString& title, bool logarithmic, std::vector<double> values, std::size_t few = 0);

// Returns an axis of words, the first at 1.
PlotAxis plot_axis(const QString& title, const QStringList& words);

// A set of points with one style and one legend entry.
struct Dots {
  QString name;
  QScatterSeries::MarkerShape shape = QScatterSeries::MarkerShapeCircle;
  double size = 10;  // pixels
  QColor colour, border;
  std::vector<QPointF> points;  // in values, not positions on the axes
  bool in_legend = true;
};

class PlotView : public QChartView {
  Q_OBJECT
public:
  explicit PlotView(QWidget* parent = nullptr);

  // Clears the chart and gives it these axes, in the colours of the palette.
  void begin(const PlotAxis& horizontal, const PlotAxis& vertical, const QPalette& palette);
  // Takes ownership of the series; the points are values.
  void add(QXYSeries* series, const std::vector<QPointF>& points);
  // Paints the dots directly. With a Qt Charts series every point would be a separate item, at 60 us each.
  void add(Dots dots);
  void hide_in_legend(QXYSeries* series);  // `series` must have been added
  // Draws rings around values to highlight them.
  void set_rings(std::vector<QPointF> values);
  void set_ring(std::optional<QPointF> value) {
    set_rings(value ? std::vector<QPointF>{*value} : std::vector<QPointF>());
  }
  const PlotAxis& horizontal() const { return horizontal_; }
  const PlotAxis& vertical() const { return vertical_; }
  // Returns where a value is drawn, in pixels of the view.
  QPointF place_of(QPointF value) const;
  QPointF value_at(QPointF place) const;

protected:
  void resizeEvent(QResizeEvent* event) override;  // moves the legend to where there is room
  void drawForeground(QPainter* painter, const QRectF& part) override;

private:
  QPointF on_axes(QPointF value) const;
  QTransform axes_to_scene() const;

  PlotAxis horizontal_, vertical_;
  std::vector<Dots> dots_;  // with points in axis coordinates
  std::vector<QPointF> rings_;
  QColor ring_colour_;
};

}  // namespace rehearse::gui
