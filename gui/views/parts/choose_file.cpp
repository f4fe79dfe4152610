#include "gui/views/parts/choose_file.hpp"

#include <QFileDialog>

namespace rehearse::gui {

void choose_file(QWidget& parent, const QString& kind, const QString& filter,
                 std::function<void(const QString& path)> open) {
  auto* dialog = new QFileDialog(&parent, QStringLiteral("Open a %1").arg(kind), QString(), filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  QObject::connect(dialog, &QFileDialog::fileSelected, &parent, std::move(open));
  dialog->open();
}

}  // namespace rehearse::gui
