// Checks writing scenarios and running them in the real window, and the list of its runs.
#include <QtTest>
#include <QtWidgets>
//
#include <fstream>
#include <sstream>

#include "gui/views/parts/appearance.hpp"
#include "gui/views/scenario/number_field.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/session/runs_view.hpp"
//
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;

namespace {

QString scenario_path(const char* name) {
  return QString("%1/../simulator/scenarios/%2.toml").arg(REHEARSE_TESTS_DIR, name);
}

QString scenario(const char* name) {
  QFile file(scenario_path(name));
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

Run run_of(const std::string& name, double step_s, Run::Source source = Run::Source::predicted) {
  Run run;
  run.name = name;
  run.source = source;
  run.figures.step_time_s = step_s;
  run.figures.samples_per_s = 2048 / step_s;
  run.figures.devices = 32;
  run.scenario_text = scenario("mlp-ring").toStdString();
  return run;
}

struct Window {
  explicit Window(QSize size = {1000, 700}) {
    view.resize(size);
    view.show();
    view.runner().set_program(REHEARSE_BIN_DIR "/rehearse");
    REQUIRE(QTest::qWaitForWindowExposed(&view, kPatienceMs));
  }
  QAction* action(const QString& text) const {
    for (QAction* action : view.actions())
      if (action->text().remove('&') == text) return action;
    FAIL("no action " << text.toStdString());
    return nullptr;
  }
  QString told() const {
    for (const QLabel* label : view.findChildren<QLabel*>())
      if (label->accessibleName() == "Whether the scenario can be run") return label->text();
    return {};
  }
  bool wait_until_told(const QString& text) const {
    return QTest::qWaitFor([&] { return told().contains(text); }, kPatienceMs);
  }
  NumberField& number(const char* key) { return *qobject_cast<NumberField*>(view.form().field(key)); }
  QComboBox& choice(const char* key) { return *qobject_cast<QComboBox*>(view.form().field(key)); }

  Session session;
  ViewState state;
  ScenarioView view{session, state};
};

void choose(QComboBox& box, const QString& text) {
  const int row = box.findText(text);
  REQUIRE(row >= 0);
  box.setFocus();
  box.setCurrentIndex(row);
  emit box.activated(row);
}

}  // namespace

TEST_CASE("An error that is typed is marked at its line, and gone when it is mended") {
  Window w;
  w.view.set_text(scenario("resnet50-ring"), "ring");
  REQUIRE(w.wait_until_told("32 devices"));
  ScenarioEditor& editor = w.view.editor();
  CHECK(editor.error_line() == 0);
  editor.go_to(7, 1);  // micro_batch = 64
  CHECK(editor.textCursor().block().text().startsWith("micro_batch"));
  QTest::keyClicks(&editor, "x");
  REQUIRE(w.wait_until_told("Line 7, column 1"));
  CHECK(editor.error_line() == 7);
  CHECK(w.told().contains("xmicro_batch"));
  CHECK(w.told().contains("Change it to micro_batch"));
  QTest::keyClick(&editor, Qt::Key_Backspace);
  REQUIRE(w.wait_until_told("32 devices"));
  CHECK(editor.error_line() == 0);
}

TEST_CASE("Keys and values are offered where they may stand, and written by Enter") {
  Window w;
  w.view.set_text("[model]\npreset = \"mlp\"\n\n[training]\nglobal_batch = 64\n\n", "mine");
  ScenarioEditor& editor = w.view.editor();
  REQUIRE(QTest::qWaitFor([&] { return editor.knows_keys(); }, kPatienceMs));
  QAbstractItemView& list = *editor.completer().popup();
  const auto choices = [&] {
    QStringList all;
    for (int r = 0; r < list.model()->rowCount(); ++r) all << list.model()->index(r, 0).data().toString();
    return all;
  };
  const auto line = [&] { return editor.textCursor().block().text(); };
  editor.go_to(6, 1);
  QTest::keyClick(&editor, Qt::Key_Space, Qt::ControlModifier);
  REQUIRE(list.isVisible());
  CHECK(choices().contains("micro_batch"));
  CHECK(choices().contains("precision"));
  CHECK_FALSE(choices().contains("global_batch"));  // it is already in the text
  // Typing narrows down the list.
  QTest::keyClicks(&list, "micr");
  CHECK(line() == "micr");
  CHECK(choices() == QStringList{"micro_batch"});
  QTest::keyClick(&list, Qt::Key_Return);
  CHECK_FALSE(list.isVisible());
  CHECK(line() == "micro_batch = ");
  QTest::keyClicks(&editor, "8");
  QTest::keyClick(&editor, Qt::Key_Return);
  QTest::keyClicks(&editor, "preci");
  QTest::keyClick(&editor, Qt::Key_Space, Qt::ControlModifier);  // a single choice is inserted immediately
  CHECK_FALSE(list.isVisible());
  CHECK(line() == "precision = ");
  QTest::keyClick(&editor, Qt::Key_Space, Qt::ControlModifier);
  REQUIRE(list.isVisible());
  CHECK(choices().contains("\"bf16\""));
  QTest::keyClicks(&list, "\"fp1");
  CHECK(choices() == QStringList{"\"fp16\""});
  QTest::keyClick(&list, Qt::Key_Return);
  CHECK(line() == "precision = \"fp16\"");
  editor.undo();  // undoes the completion in one step
  CHECK(line().startsWith("precision = "));
  // For a number nothing is offered; Esc leaves the text unchanged.
  editor.go_to(5, 16);
  QTest::keyClick(&editor, Qt::Key_Space, Qt::ControlModifier);
  CHECK_FALSE(list.isVisible());
  editor.go_to(3, 1);
  QTest::keyClicks(&editor, "[");
  QTest::keyClick(&editor, Qt::Key_Space, Qt::ControlModifier);
  REQUIRE(list.isVisible());
  CHECK(choices().contains("strategy.parameter_server"));
  QTest::keyClick(&list, Qt::Key_Escape);
  CHECK_FALSE(list.isVisible());
  CHECK(line() == "[");
}

TEST_CASE("The error's line is gone to from anywhere") {
  Window w;
  w.view.set_text(scenario("resnet50-ring").replace("micro_batch = 64", "micro_batch = 60"), "ring");
  REQUIRE(w.wait_until_told("Line "));
  ScenarioEditor& editor = w.view.editor();
  CHECK(editor.error_line() == 6);
  // Marks: a wave beneath the value, a tint behind the line, and the line of the cursor.
  const auto marks = editor.extraSelections();
  REQUIRE(marks.size() == 3);
  CHECK(marks[2].format.underlineStyle() == QTextCharFormat::WaveUnderline);
  CHECK(marks[2].cursor.selectedText() == "2048");
  CHECK(editor.textCursor().blockNumber() == 0);
  w.view.form().setFocus();
  w.action("Go to the error")->trigger();
  CHECK(editor.textCursor().blockNumber() == 5);
  CHECK(editor.hasFocus());
}

TEST_CASE("What is suggested is taken over by a click") {
  Window w;
  w.view.set_text(scenario("resnet50-ring").replace("[cluster]", "[clusterr]"), "ring");
  REQUIRE(w.wait_until_told("Change it to cluster"));
  for (QLabel* label : w.view.findChildren<QLabel*>())
    if (label->accessibleName() == "Whether the scenario can be run") emit label->linkActivated("suggestion");
  CHECK(w.view.draft().text() == scenario("resnet50-ring"));
  // The user can continue writing there.
  CHECK(w.view.editor().hasFocus());
  CHECK(w.view.editor().textCursor().position() == w.view.draft().text().indexOf("[cluster]") + 8);
  REQUIRE(w.wait_until_told("32 devices"));
}

TEST_CASE("Form and text are one draft") {
  Window w;
  w.view.set_text(scenario("mlp-ring"), "mlp");
  REQUIRE(w.wait_until_told("4 devices"));
  const QString before = w.view.draft().text();
  CHECK(w.number("training.micro_batch").value() == "16");
  CHECK(w.choice("model.preset").currentText() == "mlp");
  CHECK(w.choice("strategy.schedule").currentData().toString().isEmpty());  // not in the text
  CHECK(w.choice("strategy.schedule").currentText() == "1f1b (default)");
  CHECK_FALSE(w.view.has_unsaved_changes());

  NumberField& batch = w.number("training.micro_batch");
  batch.setFocus();
  batch.selectAll();
  QTest::keyClicks(&batch, "8");
  CHECK(w.view.draft().text() == before);  // still being typed
  QTest::keyClick(&batch, Qt::Key_Return);
  CHECK(w.view.draft().text() == QString(before).replace("micro_batch = 16", "micro_batch = 8"));
  QTest::keyClick(&batch, Qt::Key_Up);
  QTest::keyClick(&batch, Qt::Key_Up);
  CHECK(batch.value() == "32");
  CHECK(w.view.has_unsaved_changes());
  choose(w.choice("strategy.all_reduce"), "tree");
  CHECK(w.view.draft().text().contains("all_reduce = \"tree\"\n"));
  for (int i = 0; i < 4; ++i) w.action("Undo")->trigger();
  CHECK(w.view.draft().text() == before);
  CHECK_FALSE(w.view.has_unsaved_changes());

  // In the other direction, what is typed in the text is shown in the form.
  w.view.editor().go_to(10, 1);
  QTest::keyClicks(&w.view.editor(), "recompute = \"full\"");
  QTest::keyClick(&w.view.editor(), Qt::Key_Return);
  CHECK(QTest::qWaitFor([&] { return w.choice("training.recompute").currentText() == "full"; }, kPatienceMs));
  // Choosing the default removes the key.
  choose(w.choice("training.recompute"), w.choice("training.recompute").itemText(0));
  CHECK_FALSE(w.view.draft().value("training.recompute"));
}

TEST_CASE("Run gives a trace, and the run's scenario can be changed and run again") {
  Window w;
  QSignalSpy made(&w.view, &ScenarioView::trace_made), told(&w.view, &ScenarioView::message);
  w.view.set_text(scenario("mlp-ring"), "mlp");
  REQUIRE(w.wait_until_told("4 devices"));
  QTest::keyClick(&w.view, Qt::Key_R, Qt::ControlModifier);
  CHECK(QTest::qWaitFor([&] { return w.action("Cancel")->isEnabled(); }, kPatienceMs));
  REQUIRE(made.wait(kPatienceMs));
  CHECK(made[0][1].toString() == "mlp");
  CHECK(QFileInfo::exists(made[0][0].toString()));
  CHECK(told.last()[0].toString().startsWith("mlp: "));
  CHECK(told.last()[0].toString().contains(" a step, "));
  CHECK_FALSE(w.action("Cancel")->isEnabled());

  w.session.add(run_of("mlp", 0.5));
  w.action("Duplicate run")->trigger();
  CHECK(w.view.draft().name() == "mlp (2)");
  CHECK(w.view.draft().text() == scenario("mlp-ring"));
  w.view.run();
  REQUIRE(made.wait(kPatienceMs));
  CHECK(made[1][1].toString() == "mlp (2)");  // the same scenario again
  choose(w.choice("strategy.all_reduce"), "tree");
  w.view.run();
  REQUIRE(made.wait(kPatienceMs));
  CHECK(made[2][1].toString() == "mlp, all-reduce tree");
}

TEST_CASE("What is known to be wrong is not run") {
  Window w;
  QSignalSpy made(&w.view, &ScenarioView::trace_made), told(&w.view, &ScenarioView::message);
  w.view.set_text(scenario("mlp-ring").replace("nodes = 4", "nodes = 0"), "mlp");
  REQUIRE(w.wait_until_told("Line 13"));
  w.view.run();
  CHECK_FALSE(w.view.runner().busy());
  CHECK(w.view.runner().queued() == 0);
  REQUIRE(told.count() == 1);
  CHECK(told[0][0].toString().startsWith("cluster.nodes is 0; allowed: "));
  CHECK(w.view.editor().textCursor().blockNumber() == 12);
}

TEST_CASE("A run that fails is told at its line") {
  Window w;
  QSignalSpy told(&w.view, &ScenarioView::message);
  w.view.set_text(scenario("mlp-ring").replace("micro_batch = 16", "micro_batch = 15"), "mlp");
  w.view.run();  // before the check has reached it
  REQUIRE(QTest::qWaitFor([&] { return !told.isEmpty(); }, kPatienceMs));
  CHECK(QTest::qWaitFor([&] { return w.view.editor().error_line() == 6; }, kPatienceMs));
  CHECK(told.last()[0].toString().contains("training.global_batch is 64"));
}

TEST_CASE("Drafts are opened, saved, closed and opened again") {
  QTemporaryDir folder;
  const QString path = folder.filePath("mine.toml");
  REQUIRE(QFile::copy(scenario_path("mlp-ring"), path));
  QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner);
  Window w;
  CHECK(w.view.draft().name() == "untitled");
  w.view.open_scenario(path);
  auto& tabs = *w.view.findChild<QTabBar*>();
  CHECK(tabs.count() == 1);  // the untouched first draft was replaced
  CHECK(tabs.tabText(0) == "mine");
  choose(w.choice("training.optimizer"), "adam");
  CHECK(tabs.tabText(0) == "mine *");
  w.view.open_scenario(path);  // already open
  CHECK(tabs.count() == 1);
  w.action("Save scenario")->trigger();
  CHECK_FALSE(w.view.has_unsaved_changes());
  QFile saved(path);
  REQUIRE(saved.open(QIODevice::ReadOnly));
  CHECK(QString::fromUtf8(saved.readAll()) ==
        scenario("mlp-ring").replace("optimizer = \"sgd\"", "optimizer = \"adam\""));
  w.action("New scenario")->trigger();
  CHECK(tabs.count() == 2);
  choose(w.choice("model.preset"), "vgg16");
  CHECK(w.view.has_unsaved_changes());
  const QString changed = w.view.draft().text();
  QStringList asked;
  w.view.set_question([&](const QStringList& names) {
    asked = names;
    return Unsaved::discard;
  });
  w.action("Close scenario")->trigger();
  CHECK(asked == QStringList{"untitled"});
  CHECK(tabs.count() == 1);
  CHECK(w.view.draft().name() == "mine");
  CHECK_FALSE(w.view.has_unsaved_changes());
  w.action("Reopen closed scenario")->trigger();
  CHECK(w.view.draft().text() == changed);
  CHECK(w.view.has_unsaved_changes());
  QSignalSpy told(&w.view, &ScenarioView::message);
  w.view.open_scenario(folder.filePath("none.toml"));
  REQUIRE(told.count() == 1);
  CHECK(told[0][0].toString().endsWith("none.toml: there is no such file"));
  for (int i = 0; i < 5; ++i) w.action("Close scenario")->trigger();
  CHECK(w.view.draft().name() == "untitled");
}

TEST_CASE("Where there is room for one side, form and text change places") {
  Window w({340, 700});
  CHECK(w.view.form().isVisible());
  CHECK_FALSE(w.view.editor().isVisible());
  w.view.set_text(scenario("mlp-ring").replace("nodes = 4", "nodes = 0"), "mlp");
  REQUIRE(w.wait_until_told("Line 13"));
  w.action("Go to the error")->trigger();
  CHECK(w.view.editor().isVisible());
  CHECK_FALSE(w.view.form().isVisible());
  w.view.resize(1000, 700);
  CHECK(
      QTest::qWaitFor([&] { return w.view.form().isVisible() && w.view.editor().isVisible(); }, kPatienceMs));
}

TEST_CASE("The list of runs shows, hides, names, moves and removes them") {
  Session session;
  ViewState state;
  RunsView view(session, state);
  view.resize(340, 400);
  view.show();
  REQUIRE(QTest::qWaitForWindowExposed(&view, kPatienceMs));
  CHECK_FALSE(view.table().isVisible());  // says what to do instead
  const int a = session.add(run_of("a", 0.5));
  const int b = session.add(run_of("b", 0.6, Run::Source::measured));
  CHECK(view.table().isVisible());
  CHECK(view.table().currentIndex().row() == 1);  // the newest is current
  view.table().setFocus();
  QTest::keyClick(&view.table(), Qt::Key_Up);
  CHECK(session.current()->id == a);
  QTest::keyClick(&view.table(), Qt::Key_Space);
  CHECK_FALSE(session.is_shown(a));
  QTest::keyClick(&view.table(), Qt::Key_Space);
  CHECK(session.is_shown(a));
  session.set_current(b);
  QTest::keyClick(&view.table(), Qt::Key_B);
  CHECK(session.shown().front()->id == b);
  CHECK(view.table().currentIndex().row() == 0);
  QTest::keyClick(&view.table(), Qt::Key_F2);
  auto* name = view.table().findChild<QLineEdit*>();
  REQUIRE(name);
  name->selectAll();
  QTest::keyClicks(name, "b d");  // letters of shortcuts go into the name
  QTest::keyClick(name, Qt::Key_Return);
  CHECK(QTest::qWaitFor([&] { return session.run(b)->name == "b d"; }, kPatienceMs));
  CHECK(session.shown().size() == 2);
  QTest::keyClick(&view.table(), Qt::Key_Down, Qt::AltModifier);
  CHECK(session.runs()[0]->id == a);
  QSignalSpy duplicated(&view, &RunsView::duplicate_requested);
  for (QAction* action : view.actions())
    if (action->text().startsWith("&Duplicate")) action->trigger();
  REQUIRE(duplicated.count() == 1);
  CHECK(duplicated[0][0].toInt() == b);
  session.set_current(a);
  const RunsView another(session, state);  // begins with the session's current run
  CHECK(another.findChild<QTreeView*>()->currentIndex().row() == 0);
  CHECK(session.current()->id == a);
  session.set_current(b);
  state.select(SpanRef{b, 1});
  QTest::keyClick(&view.table(), Qt::Key_Delete);
  CHECK_FALSE(session.run(b));
  CHECK_FALSE(state.selected());
  CHECK(session.current()->id == a);
  QTest::keyClick(&view.table(), Qt::Key_Delete);
  CHECK(session.runs().empty());
  CHECK_FALSE(view.table().isVisible());
}

TEST_CASE("Every action of scenarios and runs is in a menu and says what it does") {
  Session session;
  ViewState state;
  ScenarioView scenarios(session, state);
  RunsView runs(session, state);
  for (const QWidget* view : {static_cast<QWidget*>(&scenarios), static_cast<QWidget*>(&runs)})
    for (const QAction* action : view->actions()) {
      CAPTURE(action->text().toStdString());
      CHECK(action->property("menu").toString().startsWith('&'));
      CHECK(action->toolTip().size() > 10);
    }
  for (const QWidget* widget : scenarios.findChildren<QWidget*>())
    if (widget->focusPolicy() & Qt::TabFocus && widget->objectName().contains('.')) {
      CAPTURE(widget->objectName().toStdString());
      CHECK_FALSE(widget->accessibleName().isEmpty());
    }
}
