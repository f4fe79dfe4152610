// Runs the tests of the window without a display, with the same appearance on all machines.
#include <QApplication>
#include <QFont>
#include <QLocale>
#include <QSettings>
#include <QTemporaryDir>

#include "gui/views/parts/appearance.hpp"
#include "tests/catch_session.hpp"

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  qputenv("QT_SCALE_FACTOR", "1");
  QApplication application(argc, argv);
  const QTemporaryDir settings;  // instead of the user's settings
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  QCoreApplication::setOrganizationName("rehearse");
  QCoreApplication::setApplicationName("rehearse-gui-test");
  // Simulating advice in all tests would take time; tests of advice turn it on in their windows.
  QSettings().setValue("tries_advice", false);
  QLocale::setDefault(QLocale::c());
  QApplication::setStyle("Fusion");
  QApplication::setPalette(rehearse::gui::palette_of(rehearse::gui::Theme::light));
  return run_tests(argc, argv);
}
