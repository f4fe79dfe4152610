#include "gui/views/window/detached_window.hpp"

#include <QAction>
#include <QCloseEvent>
#include <QVBoxLayout>

namespace rehearse::gui {

DetachedWindow::DetachedWindow(QWidget* view, const QString& title, const QWidget& main) : view_(view) {
  setWindowFlag(Qt::Window);
  setAttribute(Qt::WA_QuitOnClose, false);
  setWindowTitle(title + tr(" - Rehearse"));
  setAccessibleName(title);
  setObjectName("window of " + view->objectName());
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(view);
  view->show();
  setFocusProxy(view);
  for (QAction* action : main.findChildren<QAction*>())
    if (action->shortcutContext() == Qt::WindowShortcut) addAction(action);
}

void DetachedWindow::closeEvent(QCloseEvent* event) {
  event->accept();
  emit closed();
}

}  // namespace rehearse::gui
