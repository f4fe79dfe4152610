// Tells how to record a trace with PyTorch, and asks for those that were.
#pragma once

#include <QDialog>

namespace rehearse::gui {

class RecordDialog : public QDialog {
  Q_OBJECT
public:
  // `recorded`: there is one to look at.
  RecordDialog(bool recorded, QWidget* parent);

signals:
  void files_wanted();
  void recorded_wanted();
};

}  // namespace rehearse::gui
