// What the colours and patterns mean, and what the critical path is made of.
#pragma once

#include <QWidget>

#include "gui/views/timeline_scene.hpp"

namespace rehearse::gui {

class TimelineLegend : public QWidget {
  Q_OBJECT
public:
  explicit TimelineLegend(TimelineScene& scene, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  // "Critical path of gpt3-175b: forward 40.1 s (52.0 %), ..."; empty while it is not shown.
  QString path_text() const;

protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

private:
  QStringList path_lines() const;  // as wide as the widget
  TimelineScene& scene_;
};

}  // namespace rehearse::gui
