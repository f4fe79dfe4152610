// What our plots have in common: axes at round values, linear or logarithmic, in the window's colours.
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

// Values are drawn at on_axis(value): a logarithmic axis is one of logarithms whose marks tell the values, so
// that it has round ones also where it spans less than a power of ten.
struct PlotAxis {
  QString title;
  bool logarithmic = false;
  double least = 0, most = 1;  // values, with room to spare
  std::vector<double> marks;
  QStringList names;  // of the marks; empty: their values

  double on_axis(double value) const;
  double value_at(double place) const;  // the reverse
};

// Room for `values`, marks at 1, 2 and 5 times powers of ten, or at the values themselves where they are as
// few as `few`. Linear axes begin at 0. Values that are not above 0 have no place on a logarithmic one.
PlotAxis plot_axis(const QString& title, bool logarithmic, std::vector<double> values, std::size_t few = 0);

// Words beside each other, the first at 1.
PlotAxis plot_axis(const QString& title, const QStringList& words);

// A cloud of points, told in the legend.
struct Dots {
  QString name;
  QScatterSeries::MarkerShape shape = QScatterSeries::MarkerShapeCircle;
  double size = 10;  // pixels
  QColor colour, border;
  std::vector<QPointF> points;  // values
  bool in_legend = true;
};

class PlotView : public QChartView {
  Q_OBJECT
public:
  explicit PlotView(QWidget* parent = nullptr);

  // An empty chart with these axes, in the colours of the palette.
  void begin(const PlotAxis& horizontal, const PlotAxis& vertical, const QPalette& palette);
  // Takes the series over; points are values.
  void add(QXYSeries* series, const std::vector<QPointF>& points);
  // Painted as they are: of a series Qt Charts makes every point an item of its own, which takes 60 us each.
  void add(Dots dots);
  void hide_in_legend(QXYSeries* series);  // one that was added
  // Around values, to single them out.
  void set_rings(std::vector<QPointF> values);
  void set_ring(std::optional<QPointF> value) {
    set_rings(value ? std::vector<QPointF>{*value} : std::vector<QPointF>());
  }
  const PlotAxis& horizontal() const { return horizontal_; }
  const PlotAxis& vertical() const { return vertical_; }
  // Where a value is drawn, in pixels of the view.
  QPointF place_of(QPointF value) const;
  QPointF value_at(QPointF place) const;

protected:
  void resizeEvent(QResizeEvent* event) override;  // the legend stands where there is room
  void drawForeground(QPainter* painter, const QRectF& part) override;

private:
  QPointF on_axes(QPointF value) const;
  QTransform axes_to_scene() const;

  PlotAxis horizontal_, vertical_;
  std::vector<Dots> dots_;  // their points on the axes
  std::vector<QPointF> rings_;
  QColor ring_colour_;
};

}  // namespace rehearse::gui
