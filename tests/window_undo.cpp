// Checks that Ctrl+Z undoes changes of a scenario wherever the focus is.
#include <QtTest>

#include <QLineEdit>

#include "gui/views/scenario/number_field.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

const char* const kText =
    "[model]\npreset = \"mlp\"\n[training]\nglobal_batch = 64\nmicro_batch = 16\n"
    "[cluster]\npreset = \"cpu-cluster\"\nnodes = 4\n";

// Sends the key to the widget with the focus.
void press(Qt::Key key, Qt::KeyboardModifiers modifiers) {
  REQUIRE(QApplication::focusWidget());
  QTest::keyClick(QApplication::focusWidget(), key, modifiers);
}
void undo() {
  press(Qt::Key_Z, Qt::ControlModifier);
}
void redo() {
  press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
}

}  // namespace

TEST_CASE("Ctrl+Z takes back a change of the form from wherever the focus has gone") {
  MainWindow window;
  shown(window);
  window.activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(&window, rehearse::test::kPatienceMs));
  auto& scenarios = *static_cast<ScenarioView*>(window.view("scenario"));
  scenarios.set_text(kText, "mine");
  const QString changed = QString(kText).replace("micro_batch = 16", "micro_batch = 8");
  auto& batch = *static_cast<NumberField*>(scenarios.form().field("training.micro_batch"));
  auto& timeline = *static_cast<TimelineView*>(window.view("timeline"));
  batch.setFocus();
  batch.selectAll();
  QTest::keyClicks(&batch, "8");
  QTest::keyClick(&batch, Qt::Key_Tab);
  REQUIRE(scenarios.draft().text() == changed);
  CHECK_FALSE(batch.hasFocus());
  undo();
  CHECK(scenarios.draft().text() == kText);
  CHECK(wait_for([&] { return batch.value() == "16"; }));
  redo();
  CHECK(scenarios.draft().text() == changed);
  for (QWidget* widget :
       {static_cast<QWidget*>(&batch), static_cast<QWidget*>(&timeline.canvas()), window.view("runs"),
        scenarios.form().field("model.preset"), static_cast<QWidget*>(&scenarios.editor()),
        static_cast<QWidget*>(&timeline.search_field())}) {
    CAPTURE(widget->metaObject()->className(), widget->accessibleName().toStdString());
    scenarios.form().setVisible(scenarios.form().isAncestorOf(widget));
    scenarios.editor().setVisible(widget == &scenarios.editor());
    if (widget->focusPolicy() == Qt::NoFocus) widget = widget->nextInFocusChain();
    widget->setFocus();
    undo();
    CHECK(scenarios.draft().text() == kText);
    redo();
    CHECK(scenarios.draft().text() == changed);
  }
}

TEST_CASE("A field that is being typed in takes back its own typing first") {
  MainWindow window;
  shown(window);
  window.activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(&window, rehearse::test::kPatienceMs));
  auto& scenarios = *static_cast<ScenarioView*>(window.view("scenario"));
  scenarios.set_text(kText, "mine");
  scenarios.draft().set_number("cluster.nodes", "2");
  const QString changed = scenarios.draft().text();
  auto& batch = *static_cast<NumberField*>(scenarios.form().field("training.micro_batch"));
  batch.setFocus();
  batch.selectAll();
  QTest::keyClicks(&batch, "4");
  undo();
  CHECK(batch.value() == "16");  // immediately, since it is the field's own undo
  CHECK(scenarios.draft().text() == changed);
  undo();  // the field has nothing left to undo
  CHECK(scenarios.draft().text() == kText);
  scenarios.draft().set_number("cluster.nodes", "2");
  QLineEdit& search = static_cast<TimelineView*>(window.view("timeline"))->search_field();
  search.setFocus();
  QTest::keyClicks(&search, "send");
  while (search.isUndoAvailable()) undo();
  CHECK(search.text().isEmpty());
  CHECK(scenarios.draft().text() == changed);
  undo();
  CHECK(scenarios.draft().text() == kText);
}
