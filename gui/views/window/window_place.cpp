#include "gui/views/window/window_place.hpp"

#include <QGuiApplication>
#include <QScreen>
#include <QSettings>
#include <QWidget>
#include <algorithm>

namespace rehearse::gui {

namespace {

// Pixels; the frame's real size is unknown before the window is shown.
constexpr int kTitle = 36, kBorder = 4;
constexpr int kLeastWidth = 1280, kLeastHeight = 800, kMostWidth = 2000, kMostHeight = 1300;
constexpr int kShare = 85;  // percent of a large screen

QRect without_frame(const QRect& screen) {
  return screen.adjusted(kBorder, kTitle, -kBorder, -kBorder);
}

// Uses the primary screen if `screen` is null.
QRect available_on(const QScreen* screen) {
  if (screen == nullptr) screen = QGuiApplication::primaryScreen();
  return screen == nullptr ? QRect(0, 0, kLeastWidth, kLeastHeight) : screen->availableGeometry();
}

}  // namespace

QRect first_place(const QRect& screen) {
  const QRect room = without_frame(screen);
  const QSize wanted(std::clamp(screen.width() * kShare / 100, kLeastWidth, kMostWidth),
                     std::clamp(screen.height() * kShare / 100, kLeastHeight, kMostHeight));
  QRect place(QPoint(), wanted.boundedTo(room.size()));
  place.moveCenter(room.center());
  return kept_on(screen, place);
}

QRect kept_on(const QRect& screen, QRect wanted) {
  const QRect room = without_frame(screen);
  wanted.setSize(wanted.size().boundedTo(room.size()));
  wanted.moveLeft(std::clamp(wanted.left(), room.left(), room.right() + 1 - wanted.width()));
  wanted.moveTop(std::clamp(wanted.top(), room.top(), room.bottom() + 1 - wanted.height()));
  return wanted;
}

void remember_place(const QWidget& window, QSettings& settings) {
  settings.setValue("window/place", window.isMaximized() || window.isFullScreen() ? window.normalGeometry()
                                                                                  : window.geometry());
  settings.setValue("window/maximised", window.isMaximized());
}

void restore_place(QWidget& window, const QSettings& settings) {
  const QRect place = settings.value("window/place").toRect();
  if (place.isEmpty())
    window.setGeometry(first_place(available_on(nullptr)));
  else
    window.setGeometry(kept_on(available_on(QGuiApplication::screenAt(place.center())), place));
  if (settings.value("window/maximised").toBool()) window.setWindowState(Qt::WindowMaximized);
}

}  // namespace rehearse::gui
