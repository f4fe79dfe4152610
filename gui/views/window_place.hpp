// Saves and restores the geometry of the window.
#pragma once

#include <QRect>

class QSettings;
class QWidget;

namespace rehearse::gui {

// The geometry of the first start: as large as is useful, and entirely on the screen.
QRect first_place(const QRect& screen);
// `wanted`, moved and shrunk until it lies entirely on the screen.
QRect kept_on(const QRect& screen, QRect wanted);

void remember_place(const QWidget& window, QSettings& settings);
void restore_place(QWidget& window, const QSettings& settings);

}  // namespace rehearse::gui
