// Creates the application object that events need: one for all tests, without a display.
#pragma once

#include <QElapsedTimer>
#include <QGuiApplication>
#include <QtTest>

namespace rehearse::test {

// Maximum wait for an expected event, even on a busy machine.
constexpr int kPatienceMs = 60'000;

inline void need_application() {
  static int argc = 1;
  static char name[] = "test_gui";
  static char* argv[] = {name, nullptr};
  if (QCoreApplication::instance()) return;
  qputenv("QT_QPA_PLATFORM", "offscreen");
  new QGuiApplication(argc, argv);  // lives as long as the program
}

}  // namespace rehearse::test
