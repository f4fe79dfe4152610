// The names at the left of the tracks; a click on a header collapses and expands what stands under it.
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

signals:
  void menu_wanted(TimelineScene::Place place, QPoint global);

protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

private:
  TimelineScene& scene_;
};

}  // namespace rehearse::gui
