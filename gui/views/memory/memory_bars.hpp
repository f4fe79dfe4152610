// Draws the memory of each stage of some runs as stacked bars against the capacity of a device.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/models/memory/memory_stages.hpp"

namespace rehearse::gui {

class MemoryBars : public QWidget {
  Q_OBJECT
public:
  explicit MemoryBars(QWidget* parent = nullptr);
  void set_memory(std::vector<RunMemory> runs);
  void choose(int run, int stage);  // indices of the run and its stage; -1 for none
  int chosen_run() const { return run_; }
  int chosen_stage() const { return stage_; }
  QRectF bar(int run, int stage) const;
  QSize minimumSizeHint() const override { return {240, 120}; }

  QString message;  // shown if there are no bars

signals:
  void stage_chosen(int run, int stage);

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

private:
  QRectF plot() const;
  double top() const;  // bytes at the upper end of the axis
  double y(double bytes) const;
  std::pair<int, int> at(QPointF point) const;
  void paint_run(QPainter& painter, int run) const;
  QString tip_of(int run, int stage) const;

  std::vector<RunMemory> runs_;
  int run_ = -1, stage_ = -1;
};

QColor colour_of_part(int part, bool dark);
// Returns round tick values for an axis of bytes from 0 to `top`.
std::vector<double> memory_marks(double top, double pixels);

}  // namespace rehearse::gui
