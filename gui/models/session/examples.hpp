// Lists the examples of the start page: the files made at build time and what to show of them.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace rehearse::gui {

struct Example {
  QString name;         // "ring"
  QString title, told;  // a line and a sentence
  QStringList files;
  QString view;  // which of MainWindow::view_names() to open them in
  // Whether the card asks the user for a file; its own files then only provide the picture.
  bool asks = false;
};

// Returns the examples whose files exist, in the order of the start page.
std::vector<Example> examples();
// Returns all examples, with their files in `folder`.
std::vector<Example> examples_in(const QString& folder);

}  // namespace rehearse::gui
