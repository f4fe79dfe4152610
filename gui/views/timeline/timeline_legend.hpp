// Explains the colours and patterns, and lists the parts of the critical path.
#pragma once

#include <QWidget>

#include "gui/views/timeline/timeline_scene.hpp"

namespace rehearse::gui {

class TimelineLegend : public QWidget {
  Q_OBJECT
public:
  explicit TimelineLegend(TimelineScene& scene, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  // Returns "Critical path of gpt3-175b: forward 40.1 s (52.0 %), ..."; empty while the path is hidden.
  QString path_text() const;

protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

private:
  QStringList path_lines() const;  // broken to the width of the widget
  TimelineScene& scene_;
};

}  // namespace rehearse::gui
