// Draws the time axis: round marks, flags of the bookmarks, and the time under the mouse.
#pragma once

#include <QPointer>
#include <QWidget>

#include "gui/views/timeline/timeline_scene.hpp"

class QLineEdit;

namespace rehearse::gui {

class TimelineAxis : public QWidget {
  Q_OBJECT
public:
  explicit TimelineAxis(TimelineScene& scene, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  // Returns the bookmark that was last clicked or created; -1 for none.
  int chosen() const { return chosen_; }
  void choose(int bookmark);
  // Opens a field over the bookmark's flag: Enter accepts the text, Escape discards it.
  void edit(int bookmark);
  QLineEdit* editor() const { return editor_; }  // null unless a bookmark is being edited

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

signals:
  void edited();  // editing has ended, accepted or not

private:
  int bookmark_at(QPointF at) const;
  TimelineScene& scene_;
  void stop_editing();
  int chosen_ = -1, edited_ = -1;
  QPointer<QLineEdit> editor_;
  double pressed_x_ = 0;
  TimeRange pressed_visible_;
};

}  // namespace rehearse::gui
