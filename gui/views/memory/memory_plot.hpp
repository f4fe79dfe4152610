// Plots the stacked memory of a rank over the visible time.
#pragma once

#include <QWidget>
#include <optional>

#include "gui/models/memory/memory_stages.hpp"

namespace rehearse::gui {

class MemoryPlot : public QWidget {
  Q_OBJECT
public:
  explicit MemoryPlot(QWidget* parent = nullptr);
  // `aligned` is subtracted from the series' times to get times on the axis that the runs share.
  void set_series(MemorySeries series, Time aligned, double capacity, const QString& title);
  void set_visible(TimeRange range);
  void set_cursor_time(std::optional<Time> time);
  QSize minimumSizeHint() const override { return {240, 120}; }

  QString message;  // shown if there is no series

signals:
  void hovered(std::optional<rehearse::gui::Time> time);
  void zoomed_by(double factor, rehearse::gui::Time centre);

protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

private:
  QRectF plot() const;
  TimeScale scale() const { return {range_, plot().left(), plot().width()}; }
  double top() const;
  // Returns the index of the sample with the most memory between two times; size() of the series if there is
  // none.
  std::size_t fullest(Time from, Time to) const;

  MemorySeries series_;
  Time aligned_ = 0;
  double capacity_ = 0;
  QString title_;
  TimeRange range_;
  std::optional<Time> cursor_;
};

}  // namespace rehearse::gui
