// Defines the commands of the window's views: each has a menu, a key and a description.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QList>
#include <QString>
#include <array>
#include <functional>

class QWidget;

namespace rehearse::gui {

// The menus in their order, and submenus such as "&View|&Zoom". No menu has more than about 15 entries.
namespace menu {
inline constexpr char kBelow = '|';
inline constexpr const char *file = "&File", *edit = "&Edit", *view = "&View", *go = "&Go",
                            *select = "&Select", *run = "&Run", *help = "&Help";
inline constexpr std::array<const char*, 7> all = {file, edit, view, go, select, run, help};
inline constexpr const char *results = "&File|Sweeps, validations and &plans", *exports = "&File|&Export",
                            *zoom = "&View|&Zoom and scroll", *tracks = "&View|T&racks",
                            *groups = "&View|&Groups", *topology = "&View|T&opology",
                            *tables = "&View|Ta&bles and memory", *plots = "&View|&Plots",
                            *colours = "&View|&Colours", *views = "&Go|To the &view",
                            *bookmarks = "&Go|&Bookmarks", *trials = "&Run|&Advice and sweeps";
inline constexpr std::array<const char*, 12> below = {results, exports, zoom,    tracks, groups,    topology,
                                                      tables,  plots,   colours, views,  bookmarks, trials};
}  // namespace menu

struct Command {
  const char* menu;          // a constant of namespace menu
  QString text;              // "Zoom &in"
  QList<QKeySequence> keys;  // alternatives that do the same
  QString what;              // "Show half the time, around the cursor"
};

// Creates an action of the widget. Its keys work while the widget or a part of it has the focus (see
// `where`); the window adds it to its menu (menu_of) and to its list of commands.
QAction* add_command(QWidget& widget, const Command& command, std::function<void()> act,
                     Qt::ShortcutContext where = Qt::WidgetWithChildrenShortcut);
// Returns the menu of the action; empty if it was not made by add_command().
QString menu_of(const QAction& action);

}  // namespace rehearse::gui
