// Waits until a timeline has the results of all its background computations.
#pragma once

#include <QApplication>
#include <QThread>

#include "gui/views/timeline/timeline_view.hpp"

namespace rehearse::gui {

inline void wait_until_ready(TimelineView& view) {
  do {
    QApplication::processEvents();
    QThread::msleep(1);
  } while (!view.scene().ready());
}

}  // namespace rehearse::gui
