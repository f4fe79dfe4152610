// A window of its own for one view.
#pragma once

#include <QPointer>
#include <QWidget>

namespace rehearse::gui {

class DetachedWindow : public QWidget {
  Q_OBJECT
public:
  // Takes the view in; `main`: the window whose keys are meant here, too.
  DetachedWindow(QWidget* view, const QString& title, const QWidget& main);
  QWidget* view() const { return view_; }

signals:
  void closed();  // by the user

protected:
  void closeEvent(QCloseEvent* event) override;

private:
  QPointer<QWidget> view_;
};

}  // namespace rehearse::gui
