// Asks the user for a file to open.
#pragma once

#include <QString>
#include <functional>

class QWidget;

namespace rehearse::gui {

// `kind` names the kind of file ("sweep"), `filter` is that of the file dialog. Returns at once; `open` is
// called with the chosen path.
void choose_file(QWidget& parent, const QString& kind, const QString& filter,
                 std::function<void(const QString& path)> open);

}  // namespace rehearse::gui
