// Asks for a file, and tells why it cannot be opened.
#pragma once

#include <QString>
#include <functional>

class QWidget;

namespace rehearse::gui {

// `kind`: "sweep"; `filter`: of the dialog. `open` returns false and says why if the file is none. Nothing
// waits for the answer.
void choose_file(QWidget& parent, const QString& kind, const QString& filter,
                 std::function<bool(const QString& path, QString* why)> open);

}  // namespace rehearse::gui
