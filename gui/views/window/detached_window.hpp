// Shows a single view in a separate window.
#pragma once

#include <QPointer>
#include <QWidget>

namespace rehearse::gui {

class DetachedWindow : public QWidget {
  Q_OBJECT
public:
  // Reparents the view into this window. The window-wide shortcuts of `main` also work here.
  DetachedWindow(QWidget* view, const QString& title, const QWidget& main);
  QWidget* view() const { return view_; }

signals:
  void closed();  // emitted when the user closes the window

protected:
  void closeEvent(QCloseEvent* event) override;

private:
  QPointer<QWidget> view_;
};

}  // namespace rehearse::gui
