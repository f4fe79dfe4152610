// Takes pictures of what the window would show, without a display.
#pragma once

#include <QSize>
#include <QStringList>
#include <string>

namespace rehearse::gui {

class MainWindow;

struct Screenshot {
  std::string path;             // .png or .svg
  std::string view = "window";  // one of MainWindow::view_names()
  std::string tab;              // tab to open in a picture of the window; empty for the default
  std::string size = "1280x800";
  double scale = 2;  // pixels of the picture per pixel of the window

  void check() const;    // throws InputError if the path, size or scale is invalid
  QSize pixels() const;  // of a size that check() accepted
};

// Opens the files and runs the scenarios among them, waits until everything is shown, and writes the picture.
// Reports on standard error what could not be opened. Returns the exit status.
int take(MainWindow& window, const QStringList& files, const Screenshot& screenshot);

}  // namespace rehearse::gui
