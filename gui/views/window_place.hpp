// Where the window lies on the screen, from one start to the next.
#pragma once

#include <QRect>

class QSettings;
class QWidget;

namespace rehearse::gui {

// Of a window that was never open: as large as is useful, and whole on the screen.
QRect first_place(const QRect& screen);
// The place that is wanted, moved and made smaller until it is whole on the screen.
QRect kept_on(const QRect& screen, QRect wanted);

void remember_place(const QWidget& window, QSettings& settings);
void restore_place(QWidget& window, const QSettings& settings);

}  // namespace rehearse::gui
