// `rehearse-gui [FILE...]`: shows timelines, comparisons and what-if runs. Exit status: 0 success; 1 a
// picture could not be made; 2 invalid input.
#include <QApplication>
#include <QLocale>
#include <QSettings>
#include <QTemporaryDir>
#include <clocale>
#include <cstdlib>
#include <iostream>

#include "gui/views/window/main_window.hpp"
#include "gui/views/window/screenshot.hpp"
#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace {

using namespace rehearse;

struct Arguments {
  std::vector<std::string> files;
  gui::Screenshot screenshot;
  std::string theme;
};

void add_options(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", "rehearse-gui " REHEARSE_VERSION);
  app.add_option(
      "FILE", arguments.files,
      "Traces (.json, .json.gz) of rehearse or PyTorch's profiler, scenarios (.toml, which are run), "
      "tables of sweeps and validations (.csv), plans (.json), sessions (.rehearse)");
  app.add_option("--screenshot", arguments.screenshot.path,
                 "Write a picture (.png, .svg) of the opened files without a display, then exit")
      ->check(file_name());
  std::vector<std::string> views;
  for (const QString& name : gui::MainWindow::view_names()) views.push_back(name.toStdString());
  app.add_option("--view", arguments.screenshot.view, "Part of the window that the picture shows")
      ->check(one_of(views));
  app.add_option("--tab", arguments.screenshot.tab, "Tab that is open in a picture of the window")
      ->check(one_of(views));
  app.add_option("--size", arguments.screenshot.size, "Size of the picture: WIDTHxHEIGHT (1280x800)");
  app.add_option("--scale", arguments.screenshot.scale, "Pixels of a .png per pixel of the window (2)");
  app.add_option("--theme", arguments.theme,
                 "light, dark, or system (as the desktop, light if unknown); pictures are light by default")
      ->check(one_of({"system", "light", "dark"}));
}

// Throws RunError if there is no display; Qt would abort.
void need_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return;
  throw RunError("there is no display (DISPLAY and WAYLAND_DISPLAY are not set); --screenshot needs none");
}

// Prints Qt's messages except those about windows and directories that mean nothing when taking a picture.
void tell_but_for_windows(QtMsgType, const QMessageLogContext&, const QString& text) {
  if (!text.startsWith("This plugin does not support") && !text.startsWith("QStandardPaths: XDG_RUNTIME_DIR"))
    std::cerr << text.toStdString() << '\n';
}

int run(int argc, char** argv) {
  CLI::App app{"The window of Rehearse: shows the parts of a training step on a timeline."};
  Arguments arguments;
  add_options(app, arguments);
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  const bool picture = !arguments.screenshot.path.empty();
  if (picture) {
    arguments.screenshot.check();
    refuse_to_overwrite("--screenshot", arguments.screenshot.path, arguments.files);
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qInstallMessageHandler(tell_but_for_windows);
  } else {
    need_display();
  }
  int qt_argc = 1;  // hides the file arguments from Qt, which would parse them as its own options
  QApplication application(qt_argc, argv);
  // Qt sets the locale from the environment; its decimal comma must not get into files.
  std::setlocale(LC_NUMERIC, "C");
  QLocale::setDefault(QLocale::c());
  QCoreApplication::setOrganizationName("rehearse");
  QCoreApplication::setApplicationName("rehearse-gui");
  QGuiApplication::setDesktopFileName("rehearse-gui");  // gui/desktop: the window gets its icon
  QApplication::setStyle("Fusion");
  // Pictures use a temporary settings folder, so that they leave the user's settings unchanged.
  const QTemporaryDir unkept;
  if (picture) QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, unkept.path());
  gui::MainWindow window;
  if (!arguments.theme.empty() || picture)
    window.set_theme(arguments.theme == "dark"     ? gui::Theme::dark
                     : arguments.theme == "system" ? gui::Theme::system
                                                   : gui::Theme::light);
  QStringList files;
  for (const std::string& file : arguments.files) files << QString::fromStdString(file);
  if (picture) return gui::take(window, files, arguments.screenshot);
  window.restore_layout();
  window.show();
  window.open_files(files, true);
  return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
  return rehearse::run_program("rehearse-gui", [&] { return run(argc, argv); });
}
