// Sets the order in which Tab visits the controls of a view.
#pragma once

class QWidget;

namespace rehearse::gui {

// Starts the tab order at the focus proxy. Otherwise Tab, which enters a view there, skips every control
// before it.
void begin_tab_order_with_proxy(QWidget& view);

}  // namespace rehearse::gui
