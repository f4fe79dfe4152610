#include "gui/views/parts/ask_to_save.hpp"

#include <QMessageBox>

namespace rehearse::gui {

constexpr qsizetype kMostNames = 12;

Unsaved ask_to_save(QWidget& parent, const QStringList& names) {
  QMessageBox box(&parent);
  box.setIcon(QMessageBox::Question);
  box.setWindowTitle("Unsaved scenarios");
  const bool one = names.size() == 1;
  box.setText(one ? QString("Save the changes of %1?").arg(names.front())
                  : QString("Save the changes of %1 scenarios?").arg(names.size()));
  QString told = "Unsaved changes are lost when it is closed.";
  if (!one) {
    told = names.mid(0, kMostNames).join('\n');
    if (names.size() > kMostNames) told += QString("\nand %1 more").arg(names.size() - kMostNames);
    told += "\n\nUnsaved changes are lost when they are closed.";
  }
  box.setInformativeText(told);
  box.setStandardButtons((one ? QMessageBox::Save : QMessageBox::SaveAll) | QMessageBox::Discard |
                         QMessageBox::Cancel);
  box.setDefaultButton(one ? QMessageBox::Save : QMessageBox::SaveAll);
  box.setEscapeButton(QMessageBox::Cancel);
  switch (box.exec()) {
    case QMessageBox::Save:
    case QMessageBox::SaveAll:
      return Unsaved::save;
    case QMessageBox::Discard:
      return Unsaved::discard;
    default:
      return Unsaved::cancel;
  }
}

}  // namespace rehearse::gui
