// Asks what becomes of scenarios that have changes.
#pragma once

#include <QStringList>

class QWidget;

namespace rehearse::gui {

enum class Unsaved { save, discard, cancel };

// Waits for the answer. `names`: of the scenarios, at least one.
Unsaved ask_to_save(QWidget& parent, const QStringList& names);

}  // namespace rehearse::gui
