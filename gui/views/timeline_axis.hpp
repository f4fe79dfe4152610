// The time axis: round marks, flags of the bookmarks, the time under the mouse.
#pragma once

#include <QPointer>
#include <QWidget>

#include "gui/views/timeline_scene.hpp"

class QLineEdit;

namespace rehearse::gui {

class TimelineAxis : public QWidget {
  Q_OBJECT
public:
  explicit TimelineAxis(TimelineScene& scene, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  // The bookmark that was last clicked or made; -1: none.
  int chosen() const { return chosen_; }
  void choose(int bookmark);
  // A field over its flag: Enter keeps what is written there, Escape does not.
  void edit(int bookmark);
  QLineEdit* editor() const { return editor_; }  // null: nothing is edited

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

signals:
  void edited();  // or given up

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
