// Pictures of what the window would show, without a display.
#pragma once

#include <QSize>
#include <QStringList>
#include <string>

namespace rehearse::gui {

class MainWindow;

struct Screenshot {
  std::string path;             // .png or .svg
  std::string view = "window";  // of MainWindow::view_names()
  std::string tab;              // that is open in a picture of the window; empty: as it comes
  std::string size = "1280x800";
  double scale = 2;  // pixels for one of the window

  void check() const;    // InputError: not such a path, size or scale
  QSize pixels() const;  // of a size that was checked
};

// Opens the files (scenarios are run), waits until all is shown, and writes the picture. Returns the exit
// status; what could not be opened is told on standard error.
int take(MainWindow& window, const QStringList& files, const Screenshot& screenshot);

}  // namespace rehearse::gui
