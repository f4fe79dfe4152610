// Draws the tracks with spans, counters and marks, and handles the mouse on them.
#pragma once

#include <QPixmap>
#include <QWidget>

#include "gui/views/timeline/row_painter.hpp"
#include "gui/views/timeline/timeline_scene.hpp"

namespace rehearse::gui {

class TimelineCanvas : public QWidget {
  Q_OBJECT
public:
  explicit TimelineCanvas(TimelineScene& scene, QWidget* parent = nullptr);

signals:
  void menu_wanted(TimelineScene::Place place, QPoint global);

protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

private:
  void repaint_tracks();  // marks the cached tracks as outdated
  void paint_tracks(QPainter& painter);
  void paint_header(QPainter& painter, const Line& line, QRect rect);
  void paint_row(QPainter& painter, const Line& line, QRect rect);
  void paint_group(QPainter& painter, const Line& line, QRect rect);
  void paint_path(QPainter& painter, const Line& line, QRect rect);
  void paint_area(QPainter& painter);
  void drag_area(QPoint to);
  void pan_to(QPoint to);
  // Returns the edge of the selected area at `at`: -1 for its begin, 1 for its end, 0 for neither.
  int edge_at(QPointF at) const;
  QString tip_at(const TimelineScene::Place& place) const;
  QString tip_of(const RankGroup& group, Time time) const;
  std::vector<int> rows_in(const Line& line) const;  // rows that are collapsed into the line

  TimelineScene& scene_;
  RowPainter row_painter_;
  QPixmap tracks_;  // cached, without what follows the mouse
  bool tracks_old_ = true;
  enum class Drag { none, pressed, area, edge, pan } drag_ = Drag::none;
  QPoint pressed_at_;
  Time pressed_time_ = 0;
  int pressed_scroll_ = 0, pressed_line_ = 0;
  TimeRange pressed_visible_;
  int edge_ = 0;
};

}  // namespace rehearse::gui
