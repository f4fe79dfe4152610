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
// "42.1 GB", "64 %".
QString counter_text(const Counter& counter, double value);

}  // namespace rehearse::gui
