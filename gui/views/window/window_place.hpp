// Saves and restores the geometry of the window.
#pragma once

#include <QRect>

class QSettings;
class QWidget;

namespace rehearse::gui {

// Returns the geometry for the first start: as large as useful, and entirely on the screen.
QRect first_place(const QRect& screen);
// Returns `wanted`, moved and shrunk until it is entirely on the screen.
QRect kept_on(const QRect& screen, QRect wanted);

void remember_place(const QWidget& window, QSettings& settings);
void restore_place(QWidget& window, const QSettings& settings);

}  // namespace rehearse::gui
