// Asks whether to save scenarios with unsaved changes.
#pragma once

#include <QStringList>

class QWidget;

namespace rehearse::gui {

enum class Unsaved { save, discard, cancel };

// Blocks until the user answers. `names` are the names of the scenarios, at least one.
Unsaved ask_to_save(QWidget& parent, const QStringList& names);

}  // namespace rehearse::gui
