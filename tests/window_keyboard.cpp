// Operates the entire window by keyboard: every control has a name and can be reached by Tab and by
// Shift+Tab.
#include <QtTest>

#include <QAbstractButton>
#include <QTabBar>
#include <set>

#include "gui/views/window/main_window.hpp"
#include "gui/views/window/workspace.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

constexpr int kEnough = 80;  // presses that reach no new widget before the search ends

// Returns the widgets of the view that can currently get the focus by Tab, without parts of other controls.
std::vector<QWidget*> controls_of(const QWidget& view) {
  std::vector<QWidget*> controls;
  for (QWidget* widget : view.findChildren<QWidget*>())
    if (widget->isVisible() && widget->isEnabled() && widget->focusProxy() == nullptr &&
        (widget->focusPolicy() & Qt::TabFocus) != 0)
      controls.push_back(widget);
  return controls;
}

QString described(const QWidget* widget) {
  return QString("%1 \"%2\" in %3")
      .arg(widget->metaObject()->className(), widget->accessibleName(),
           widget->parentWidget() != nullptr ? widget->parentWidget()->metaObject()->className() : "");
}

// Returns every widget that gets the focus while the key is pressed repeatedly. Texts that take Tab as a
// letter, and pictures through whose parts Tab moves, are left as if by Ctrl+Tab.
std::set<QWidget*> reached_by(MainWindow& window, Qt::Key key) {
  std::set<QWidget*> reached;
  int stays = 0, nothing_new = 0;
  while (nothing_new < kEnough) {
    QWidget* before = QApplication::focusWidget();
    if (before == nullptr) break;
    nothing_new = reached.insert(before).second ? 0 : nothing_new + 1;
    QTest::keyClick(before, key, key == Qt::Key_Backtab ? Qt::ShiftModifier : Qt::NoModifier);
    stays = QApplication::focusWidget() == before ? stays + 1 : 0;
    if (stays < 3) continue;
    QWidget* next = before;
    do next = key == Qt::Key_Tab ? next->nextInFocusChain() : next->previousInFocusChain();
    while (next != before &&
           !((next->focusPolicy() & Qt::TabFocus) != 0 && next->isVisible() && next->isEnabled() &&
             next->focusProxy() == nullptr && next->window() == &window));
    next->setFocus(Qt::TabFocusReason);
    stays = 0;
  }
  return reached;
}

}  // namespace

TEST_CASE("Every control of every view has a name and is reached by Tab and back") {
  MainWindow window;
  shown(window);
  window.activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(&window, rehearse::test::kPatienceMs));
  settle(window);
  const auto check = [&](const QString& name) {
    CAPTURE(name.toStdString());
    QWidget* view = window.view(name);
    window.show_view(name);
    view->setFocus();
    settle(window);
    const std::vector<QWidget*> controls = controls_of(window);
    REQUIRE(controls.size() > 5);
    const std::set<QWidget*> forward = reached_by(window, Qt::Key_Tab);
    const std::set<QWidget*> back = reached_by(window, Qt::Key_Backtab);
    for (QWidget* control : controls) {
      CAPTURE(described(control).toStdString());
      const auto* button = qobject_cast<const QAbstractButton*>(control);
      CHECK_FALSE((control->accessibleName().isEmpty() && (button == nullptr || button->text().isEmpty())));
      if (!control->isVisible() || !control->isEnabled()) continue;  // hidden or disabled by the keys
      CHECK(forward.count(control) == 1);
      CHECK(back.count(control) == 1);
    }
  };
  check("start");
  window.open_files({ring_trace(), servers_trace(), REHEARSE_TESTS_DIR "/plans/gpt3-175b.json"});
  settle(window);
  for (const QString& name : MainWindow::view_names())
    if (name != "window" && name != "start" && name != "scaling" && name != "accuracy") check(name);
}
