// The names at the left of the tracks; a click on a header collapses and expands what stands under it. While
// an area is selected, boxes beside the names choose the tracks that it counts.
#pragma once

#include <QWidget>

#include "gui/views/timeline_scene.hpp"

namespace rehearse::gui {

class TimelineLabels : public QWidget {
  Q_OBJECT
public:
  explicit TimelineLabels(TimelineScene& scene, QWidget* parent = nullptr);
  // What stands beside the line; for tests and tooltips too.
  QString text_of(const Line& line) const;
  // The line that keys act on while the names have the focus; -1: none.
  int current() const { return current_; }
  // Chooses or leaves out what stands under the line.
  void toggle_in_area(int line);
  // Where the box beside a name is, of those lines that have one.
  QRect box_of(const Line& line) const;

signals:
  void menu_wanted(TimelineScene::Place place, QPoint global);

protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;

private:
  void paint_box(QPainter& painter, std::size_t at);
  void paint_low_names(QPainter& painter);
  void set_collapsed(const Line& line, bool collapsed);
  void go_to(int line);

  TimelineScene& scene_;
  int current_ = -1;
};

}  // namespace rehearse::gui
