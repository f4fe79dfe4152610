#include "gui/views/window/tab_order.hpp"

#include <QWidget>
#include <vector>

namespace rehearse::gui {

void begin_tab_order_with_proxy(QWidget& view) {
  const QWidget* proxy = view.focusProxy();
  if (proxy == nullptr) return;
  std::vector<QWidget*> before;
  QWidget* last = nullptr;
  bool passed = false;
  for (QWidget* widget = view.nextInFocusChain(); widget != &view; widget = widget->nextInFocusChain()) {
    passed = passed || widget == proxy;
    if (!view.isAncestorOf(widget) || widget->focusProxy() != nullptr ||
        (widget->focusPolicy() & Qt::TabFocus) == 0)
      continue;
    if (passed)
      last = widget;
    else
      before.push_back(widget);
  }
  for (QWidget* widget : before) {
    if (last != nullptr) QWidget::setTabOrder(last, widget);
    last = widget;
  }
}

}  // namespace rehearse::gui
