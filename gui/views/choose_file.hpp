// Asks for a file.
#pragma once

#include <QString>
#include <functional>

class QWidget;

namespace rehearse::gui {

// `kind`: "sweep"; `filter`: of the dialog. Nothing waits for the answer.
void choose_file(QWidget& parent, const QString& kind, const QString& filter,
                 std::function<void(const QString& path)> open);

}  // namespace rehearse::gui
