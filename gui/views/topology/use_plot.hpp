// Plots a link's use over the visible time as a small step plot.
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

#include "gui/models/timeline/time_scale.hpp"

namespace rehearse::gui {

class UsePlot : public QWidget {
  Q_OBJECT
public:
  explicit UsePlot(QWidget* parent = nullptr);
  // `use` holds mean shares over equal intervals of `range`, which is on the axis that the runs share.
  void set_use(std::vector<double> use, TimeRange range);
  void set_capacity(double bytes_per_s);  // drawn as a dashed line if the axis reaches it
  void set_cursor_time(std::optional<Time> time);
  std::size_t bins() const { return static_cast<std::size_t>(std::max(1.0, plot().width())); }
  const std::vector<double>& use() const { return use_; }
  QSize sizeHint() const override { return {320, 96}; }
  QSize minimumSizeHint() const override { return {120, 58}; }

signals:
  void hovered(std::optional<rehearse::gui::Time> time);
  void resized();

protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

private:
  QRectF plot() const;
  TimeScale scale() const { return {range_, plot().left(), plot().width()}; }

  std::vector<double> use_;
  TimeRange range_;
  double capacity_ = 0;
  std::optional<Time> cursor_;
};

}  // namespace rehearse::gui
