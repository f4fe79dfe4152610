// In which order Tab goes through a view.
#pragma once

class QWidget;

namespace rehearse::gui {

// Begins with the view's focus proxy: Tab enters a view there, and would never come to what stands before it.
void begin_tab_order_with_proxy(QWidget& view);

}  // namespace rehearse::gui
