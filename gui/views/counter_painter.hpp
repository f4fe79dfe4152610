// Counters as step plots, with their scale and the value at the cursor.
#pragma once

#include <QPainter>
#include <QPalette>

#include "gui/views/timeline_scene.hpp"

namespace rehearse::gui {

void paint_counter(QPainter& painter, const TimelineScene& scene, const Line& line, QRect rect,
                   const QPalette& palette);
// Of all counters in sight, at the cursor.
void paint_counter_values(QPainter& painter, const TimelineScene& scene, const QPalette& palette);
// "42.1 GiB", "3.1 GB/s", "64 %".
QString counter_text(const Counter& counter, double value);
// Where the axis ends: with the capacity, if it is known and a good part of it is used.
double top_of_counter(double greatest, double capacity);
// What stands at the top: "25.0 GB/s"; of a capacity beyond it "41.0 MB/s, 1.3 % of 3.1 GB/s".
QString scale_text(const Counter& counter, double greatest, double capacity);

}  // namespace rehearse::gui
