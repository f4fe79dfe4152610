// Draws parallel coordinates: each plan is a line through its position on every axis, coloured by step time.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/models/tables/plan_axes.hpp"

namespace rehearse::gui {

class PlanCoordinates : public QWidget {
  Q_OBJECT
public:
  explicit PlanCoordinates(QWidget* parent = nullptr);

  void show_plans(std::shared_ptr<const PlanFile> file, std::vector<PlanAxis> axes);
  void set_shown(std::vector<bool> shown);  // indexed by plan
  void set_selected(std::vector<std::size_t> plans);
  const std::vector<PlanAxis>& axes() const { return axes_; }
  // Ranges of axes, set by dragging along an axis or with keys; plans outside them are filtered out.
  const PlanRanges& ranges() const { return ranges_; }
  void set_ranges(PlanRanges ranges);
  // Returns the pixel of a position on an axis.
  QPointF place_of(std::size_t axis, double place) const;

  QSize minimumSizeHint() const override { return {240, 150}; }

signals:
  void ranges_changed();
  void picked(std::size_t plan, bool beside_others);
  void activated();

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

private:
  QRectF area() const;  // the rectangle that the axes span
  double axis_distance() const;
  QPolygonF line_of(std::size_t plan) const;
  std::optional<std::size_t> axis_near(QPointF at) const;
  std::optional<std::size_t> plan_near(QPointF at) const;
  double share_at(double y) const;
  double slowness_of(std::size_t plan) const;  // 0 for the fastest, 1 for the slowest
  void move_end(bool upper, bool up);
  void paint_lines(QPainter& painter);
  void paint_axis(QPainter& painter, std::size_t number);
  void paint_legend(QPainter& painter);

  std::shared_ptr<const PlanFile> file_ = std::make_shared<const PlanFile>();
  std::vector<PlanAxis> axes_;
  std::vector<bool> shown_;
  std::vector<std::size_t> selected_, by_slowness_;
  double least_s_ = 0, most_s_ = 0;
  PlanRanges ranges_;
  std::optional<std::size_t> under_mouse_, pressed_axis_;
  std::size_t current_axis_ = 0;
  QPointF pressed_at_;
  bool dragged_ = false;
};

}  // namespace rehearse::gui
