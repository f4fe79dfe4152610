// The whole time of all shown runs in a band, with a handle on what is visible.
#pragma once

#include <QPixmap>
#include <QWidget>

#include "gui/views/timeline_scene.hpp"

namespace rehearse::gui {

class Minimap : public QWidget {
  Q_OBJECT
public:
  explicit Minimap(TimelineScene& scene, QWidget* parent = nullptr);
  QSize sizeHint() const override;

protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

private:
  TimeScale scale() const;
  void paint_bands(QPainter& painter) const;
  void paint_course(QPainter& painter, const Run& run, const TimeScale& scale, QRectF band) const;
  // -1: the handle's left edge, 1: its right one, 0: neither.
  int edge_at(double x) const;

  TimelineScene& scene_;
  QPixmap bands_;
  bool bands_old_ = true, course_shown_ = false;
  int edge_ = 0;
  double grabbed_at_ = 0;  // pixels from the handle's left edge
};

}  // namespace rehearse::gui
