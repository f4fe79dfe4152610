// The time axis: round marks, flags of the bookmarks, the time under the mouse.
#pragma once

#include <QWidget>

#include "gui/views/timeline_scene.hpp"

namespace rehearse::gui {

class TimelineAxis : public QWidget {
  Q_OBJECT
public:
  explicit TimelineAxis(TimelineScene& scene, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  // The bookmark that was last clicked or made; -1: none.
  int chosen() const { return chosen_; }
  void choose(int bookmark);

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

private:
  int bookmark_at(QPointF at) const;
  TimelineScene& scene_;
  int chosen_ = -1;
  double pressed_x_ = 0;
  TimeRange pressed_visible_;
};

}  // namespace rehearse::gui
