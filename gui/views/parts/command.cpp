#include "gui/views/parts/command.hpp"

#include <QWidget>

namespace rehearse::gui {

namespace {

constexpr const char* kMenu = "menu";  // name of the action's property

}  // namespace

QAction* add_command(QWidget& widget, const Command& command, std::function<void()> act,
                     Qt::ShortcutContext where) {
  auto* action = new QAction(command.text, &widget);
  action->setShortcuts(command.keys);
  action->setShortcutContext(where);
  action->setStatusTip(command.what);
  action->setToolTip(command.keys.isEmpty()
                         ? command.what
                         : QStringLiteral("%1 (%2)").arg(command.what, command.keys.front().toString()));
  action->setProperty(kMenu, command.menu);
  QObject::connect(action, &QAction::triggered, &widget, std::move(act));
  widget.addAction(action);
  return action;
}

QString menu_of(const QAction& action) {
  return action.property(kMenu).toString();
}

}  // namespace rehearse::gui
