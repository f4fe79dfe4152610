// Draws a small preview of an example: bars of spans, or points and curves, in a square from 0 to 1.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QStringList>
#include <vector>

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

struct Sketch {
  struct Bar {
    QRectF place;  // origin in the upper left corner
    Kind kind;
    Pass pass;
  };
  struct Curve {
    std::vector<QPointF> points;
    int run = 0;  // run that determines the color; -1: a reference line
    bool joined = false;
  };
  std::vector<Bar> bars;
  std::vector<Curve> curves;
  bool empty() const { return bars.empty() && curves.empty(); }
};

// Makes the preview from the example's files. Empty if they cannot be read.
Sketch sketch_of(const QStringList& files);

}  // namespace rehearse::gui
