// Explains how to record a trace with PyTorch, and offers to open recorded ones.
#pragma once

#include <QDialog>

namespace rehearse::gui {

class RecordDialog : public QDialog {
  Q_OBJECT
public:
  // `recorded`: whether there is a recorded example to open.
  RecordDialog(bool recorded, QWidget* parent);

signals:
  void files_wanted();
  void recorded_wanted();
};

}  // namespace rehearse::gui
