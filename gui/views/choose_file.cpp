#include "gui/views/choose_file.hpp"

#include <QFileDialog>
#include <QMessageBox>

namespace rehearse::gui {

void choose_file(QWidget& parent, const QString& kind, const QString& filter,
                 std::function<bool(const QString& path, QString* why)> open) {
  auto* dialog = new QFileDialog(&parent, QStringLiteral("Open a %1").arg(kind), QString(), filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  QObject::connect(dialog, &QFileDialog::fileSelected, &parent,
                   [&parent, kind, open = std::move(open)](const QString& path) {
                     QString why;
                     if (open(path, &why)) return;
                     auto* message =
                         new QMessageBox(QMessageBox::Warning, QStringLiteral("Not a %1").arg(kind), why,
                                         QMessageBox::Ok, &parent);
                     message->setAttribute(Qt::WA_DeleteOnClose);
                     message->open();
                   });
  dialog->open();
}

}  // namespace rehearse::gui
