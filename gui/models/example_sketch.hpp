// What an example looks like, small: rows of spans, or points and curves, in a square from 0 to 1.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QStringList>
#include <vector>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

struct Sketch {
  struct Bar {
    QRectF place;  // from the upper left
    Kind kind;
    Pass pass;
  };
  struct Curve {
    std::vector<QPointF> points;
    int run = 0;  // the run that gives the colour; -1: a reference line
    bool joined = false;
  };
  std::vector<Bar> bars;
  std::vector<Curve> curves;
  bool empty() const { return bars.empty() && curves.empty(); }
};

// Of an example's files. Empty where they cannot be read.
Sketch sketch_of(const QStringList& files);

}  // namespace rehearse::gui
