// Draws the names left of the tracks; a click on a header collapses or expands the lines below it. While an
// area is selected, boxes beside the names select the tracks that it includes.
#pragma once

#include <QWidget>

#include "gui/views/timeline/timeline_scene.hpp"

namespace rehearse::gui {

class TimelineLabels : public QWidget {
  Q_OBJECT
public:
  explicit TimelineLabels(TimelineScene& scene, QWidget* parent = nullptr);
  // Returns the text beside the line; also for tests and tooltips.
  QString text_of(const Line& line) const;
  // Returns the line that keys apply to while the names have the focus; -1 for none.
  int current() const { return current_; }
  // Adds all tracks below the line to the selected area, or removes them.
  void toggle_in_area(int line);
  // Returns the rectangle of the box beside a name. Call it only for lines that have a box.
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
