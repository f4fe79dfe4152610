// Draws marks over the tracks: arrows of the selected span, the critical path, bookmarks and the cursor.
#pragma once

#include <QPainter>
#include <QPalette>

#include "gui/views/timeline/timeline_scene.hpp"

namespace rehearse::gui {

void paint_links(QPainter& painter, const TimelineScene& scene, const QPalette& palette);
void paint_critical_path(QPainter& painter, const TimelineScene& scene, const QPalette& palette);
void paint_bookmarks(QPainter& painter, const TimelineScene& scene, const QPalette& palette);
void paint_cursor(QPainter& painter, const TimelineScene& scene, const QPalette& palette);

}  // namespace rehearse::gui
