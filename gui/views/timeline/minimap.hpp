// Shows the entire time of all shown runs in a band, with a handle on the visible range.
#pragma once

#include <QPixmap>
#include <QWidget>

#include "gui/views/timeline/timeline_scene.hpp"

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
  // Returns -1 at the handle's left edge, 1 at its right edge, and 0 elsewhere.
  int edge_at(double x) const;

  TimelineScene& scene_;
  QPixmap bands_;
  bool bands_old_ = true, course_shown_ = false;
  int edge_ = 0;
  double grabbed_at_ = 0;  // pixels from the handle's left edge
};

}  // namespace rehearse::gui
