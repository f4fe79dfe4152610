// Paints counters as step plots with their scale and the value at the cursor.
#pragma once

#include <QPainter>
#include <QPalette>

#include "gui/views/timeline/timeline_scene.hpp"

namespace rehearse::gui {

void paint_counter(QPainter& painter, const TimelineScene& scene, const Line& line, QRect rect,
                   const QPalette& palette);
// Paints the values of all visible counters at the cursor.
void paint_counter_values(QPainter& painter, const TimelineScene& scene, const QPalette& palette);
// Formats a value of the counter: "42.1 GiB", "3.1 GB/s", "64 %".
QString counter_text(const Counter& counter, double value);
// Returns the upper end of the axis: the capacity, if it is known and at least a fifth of it is used.
double top_of_counter(double greatest, double capacity);
// Returns the label of the axis's upper end: "25.0 GB/s" or, if the capacity is beyond it, "41.0 MB/s, 1.3 %
// of 3.1 GB/s".
QString scale_text(const Counter& counter, double greatest, double capacity);

}  // namespace rehearse::gui
