// The examples that the window begins with: files that are made when it is built, and what to show of them.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace rehearse::gui {

struct Example {
  QString name;         // "ring"
  QString title, told;  // one line, and one sentence
  QStringList files;
  QString view;  // of MainWindow::view_names(), that is shown with them
  // Whether the card asks for a file of the user; its own files then only make the picture.
  bool asks = false;
};

// The examples whose files exist, in the order of the page.
std::vector<Example> examples();
// All of them, their files expected in `folder`.
std::vector<Example> examples_in(const QString& folder);

}  // namespace rehearse::gui
