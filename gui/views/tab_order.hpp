// Sets the order in which Tab visits the controls of a view.
#pragma once

class QWidget;

namespace rehearse::gui {

// Begins at the focus proxy: Tab enters the view there and would skip every control before it.
void begin_tab_order_with_proxy(QWidget& view);

}  // namespace rehearse::gui
