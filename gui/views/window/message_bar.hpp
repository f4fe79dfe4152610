// Shows errors in full: wrapped and selectable, until the user dismisses them.
#pragma once

#include <QFrame>
#include <QStringList>

class QPlainTextEdit;

namespace rehearse::gui {

class MessageBar : public QFrame {
  Q_OBJECT
public:
  explicit MessageBar(QWidget* parent = nullptr);
  void add(const QString& message);  // appends to the messages that have not been dismissed
  void dismiss();
  QString text() const;  // one message per line; empty if hidden

protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // Esc dismisses

private:
  void fit_height();
  QStringList messages_;
  QPlainTextEdit* text_ = nullptr;
};

}  // namespace rehearse::gui
