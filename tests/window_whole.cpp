// Drives the entire window as a user would: by keys, wheel, clicks and files.
#include <QtTest>

#include <QAbstractButton>
#include <QAbstractItemModelTester>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAction>
#include <QComboBox>
#include <QImage>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QSettings>
#include <QTemporaryDir>

#include <fstream>

#include "gui/views/parts/command.hpp"
#include "gui/views/parts/export.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/tables/scaling_view.hpp"
#include "gui/views/timeline/selection_view.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "gui/views/window/command_list.hpp"
#include "gui/views/window/main_window.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

QString text_of_file(const QString& path) {
  std::ifstream file(path.toStdString());
  return QString::fromStdString(std::string(std::istreambuf_iterator<char>(file), {}));
}

TimelineView& timeline_of(MainWindow& window) {
  return *static_cast<TimelineView*>(window.view("timeline"));
}

void wheel(QWidget& widget, QPoint at, int delta, Qt::KeyboardModifiers keys) {
  QWheelEvent event(at, widget.mapToGlobal(at), {}, {0, delta}, Qt::NoButton, keys, Qt::NoScrollPhase, false);
  QApplication::sendEvent(&widget, &event);
}

std::vector<QAction*> commands_of(const MainWindow& window) {
  std::vector<QAction*> commands;
  for (QAction* action : window.findChildren<QAction*>())
    if (!menu_of(*action).isEmpty()) commands.push_back(action);
  return commands;
}

}  // namespace

TEST_CASE("A trace opens, and keys and wheel go through its time") {
  MainWindow window;
  shown(window);
  window.open_files({pipeline_trace()});
  settle(window);
  REQUIRE(window.session().runs().size() == 1);
  CHECK(window.failures() == 0);
  CHECK(window.windowTitle() == "pipeline - Rehearse");
  CHECK(window.session().current()->judged);
  const TimeRange before = window.state().visible();
  REQUIRE(before.length() > 0);

  QWidget& canvas = timeline_of(window).canvas();
  canvas.setFocus();
  QTest::keyClick(&canvas, Qt::Key_W);
  CHECK(window.state().visible().length() < before.length());
  QTest::keyClick(&canvas, Qt::Key_S);
  const TimeRange between = window.state().visible();
  wheel(canvas, canvas.rect().center(), 120, Qt::ControlModifier);
  CHECK(window.state().visible().length() < between.length());
  const TimeRange zoomed_in = window.state().visible();
  QTest::keyClick(&canvas, Qt::Key_D);
  CHECK(window.state().visible().begin > zoomed_in.begin);
  CHECK(window.state().visible().length() == zoomed_in.length());
  QTest::keyClick(&canvas, Qt::Key_0);
  CHECK(window.state().visible() == window.state().whole());
  window.state().back();
  CHECK(window.state().visible() != window.state().whole());
}

TEST_CASE("A click selects a span, and the search goes from hit to hit") {
  MainWindow window;
  shown(window);
  window.open_files({pipeline_trace()});
  settle(window);
  TimelineView& timeline = timeline_of(window);
  const Session::RunPointer run = window.session().current();
  const Timeline& spans = *run->timeline;

  timeline.search_field().setFocus();
  QTest::keyClicks(&timeline.search_field(), "optimizer");
  REQUIRE(wait_for([&] { return timeline.hit_label().text().contains("hit"); }));
  QTest::keyClick(&timeline.search_field(), Qt::Key_Return);
  REQUIRE(wait_for([&] { return window.state().selected().has_value(); }));
  CHECK(spans.name_of(window.state().selected()->span).find("optimizer") != std::string::npos);
  const SpanRef first = *window.state().selected();
  QTest::keyClick(&timeline.search_field(), Qt::Key_Return);
  CHECK(wait_for([&] { return *window.state().selected() != first; }));
  CHECK(window.view("selection")->isVisible());
  window.state().clear_selection();
  CHECK_FALSE(window.state().selected());
}

TEST_CASE("Two runs stand on one axis, and the difference is told in a sentence") {
  MainWindow window;
  shown(window);
  window.open_files({ring_trace(), servers_trace()});
  settle(window);
  REQUIRE(window.session().shown().size() == 2);
  window.show_view("compare");
  REQUIRE(wait_for([&] {
    for (const QLabel* label : window.view("compare")->findChildren<QLabel*>())
      if (label->text().contains("slower") || label->text().contains("faster")) return true;
    return false;
  }));
}

TEST_CASE("A scenario with an error is marked, corrected, run, and its result seen") {
  MainWindow window;
  shown(window);
  auto* scenario = static_cast<ScenarioView*>(window.view("scenario"));
  scenario->set_text(text_of_file(REHEARSE_TESTS_DIR "/../simulator/scenarios/resnet50-ring.toml"), "mine");
  QString text = scenario->editor().toPlainText();
  scenario->editor().setPlainText(QString(text).replace("[training]", "[training]\nglobal_batsch = 3"));
  const int line =
      1 + static_cast<int>(scenario->editor().toPlainText().split("global_batsch")[0].count('\n'));
  REQUIRE(wait_for([&] { return scenario->editor().error_line() == line; }));
  scenario->editor().setPlainText(text);
  REQUIRE(wait_for([&] { return scenario->editor().error_line() == 0; }));
  scenario->run();
  REQUIRE(wait_for([&] { return window.session().runs().size() == 1; }));
  settle(window);
  CHECK(window.session().current()->name == "mine");
  CHECK(window.session().current()->figures.step_time_s > 0);
  scenario->duplicate_run(window.session().current()->id);
  CHECK(scenario->editor().toPlainText().contains("[cluster"));
}

TEST_CASE("Views are written as pictures, tables as CSV") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  window.open_files({pipeline_trace()});
  settle(window);
  for (const QString& name : MainWindow::view_names()) {
    CAPTURE(name.toStdString());
    QWidget* view = name == "window" ? &window : window.view(name);
    REQUIRE(view != nullptr);
    window.show_view(name);
    QApplication::processEvents();
    const QString png = folder.filePath(name + ".png"), svg = folder.filePath(name + ".svg");
    write_picture(*view, png);
    write_picture(*view, svg);
    CHECK(QImage(png).size() == view->size() * 2);
    CHECK(text_of_file(svg).contains("<svg"));
  }
  CHECK_THROWS(write_picture(window, folder.filePath("no/such.png")));
  CHECK_THROWS(write_picture(window, folder.filePath("picture.gif")));

  window.show_view("table");
  auto* table = window.view("table")->findChild<QAbstractItemView*>();
  REQUIRE(table != nullptr);
  REQUIRE(wait_for([&] { return table->model()->rowCount() > 0; }));
  const QString csv = folder.filePath("ops.csv");
  write_csv(*table->model(), csv);
  CHECK(text_of_file(csv).count('\n') == table->model()->rowCount() + 1);
}

TEST_CASE("A session opens again as it was left") {
  const QTemporaryDir folder;
  const QString path = folder.filePath("work.rehearse");
  TimeRange visible;
  {
    MainWindow window;
    shown(window);
    window.open_files({ring_trace(), pipeline_trace()});
    settle(window);
    window.session().set_shown(window.session().runs()[0]->id, false);
    const TimeRange whole = window.state().whole();
    window.state().set_visible({whole.begin, whole.begin + whole.length() / 3});
    visible = window.state().visible();
    window.state().set_bookmarks({{{5, 5}, "here"}});
    window.state().show_critical_path(true);
    window.save_session(path);
  }
  MainWindow window;
  shown(window);
  window.open_files({path});
  settle(window);
  REQUIRE(window.session().runs().size() == 2);
  CHECK(window.failures() == 0);
  CHECK_FALSE(window.session().is_shown(window.session().runs()[0]->id));
  CHECK(window.session().current()->name == "pipeline");
  CHECK(window.state().visible() == visible);
  CHECK(window.state().bookmarks().size() == 1);
  CHECK(window.state().shows_critical_path());
}

TEST_CASE("What cannot be opened is told, and what can be read of it is shown") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  const QString missing = folder.filePath("none.json");
  window.open_files(
      {missing, folder.filePath("none.toml"), folder.filePath("none.rehearse"), folder.filePath("none.csv")});
  settle(window);
  CHECK(window.failures() == 4);
  CHECK(window.notices().join("\n").contains("none.json"));

  // The file is truncated in the middle.
  const QString cut = folder.filePath("cut.json");
  std::ofstream(cut.toStdString()) << R"({"traceEvents": [
    {"ph": "X", "name": "forward", "pid": 1, "tid": 1, "ts": 0, "dur": 10},
    {"ph": "X", "name": "backward", "pid": 1, "tid": 1, "ts": 10, "d)";
  window.open_files({cut});
  settle(window);
  REQUIRE(window.session().runs().size() == 1);
  CHECK_FALSE(window.session().current()->timeline->problems.empty());
}

TEST_CASE("Tables of results are read in the background, and broken ones change nothing") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  const QString sweep = folder.filePath("sweep.csv"), other = folder.filePath("other.csv"),
                validation = folder.filePath("validation.csv");
  {
    std::ofstream file(sweep.toStdString());
    file << "point,cluster.nodes,step_time_s,samples_per_s,devices,status,error\n";
    for (int i = 1; i <= 20'000; ++i) file << i << ',' << i % 100 + 1 << ",1,32,4,ok,\n";
  }
  std::ofstream(other.toStdString()) << "a,b\n1,2\n";
  std::ofstream(validation.toStdString()) << "run,topology,strategy,ranks,measured_step_s,predicted_step_s\n"
                                          << "a,star,x,4,0.1,0.105\n";
  auto& scaling = *qobject_cast<ScalingView*>(window.view("scaling"));
  window.open_files({sweep});
  CHECK_FALSE(window.settled());
  CHECK(scaling.path().isEmpty());  // being read on another thread
  settle(window);
  CHECK(scaling.path() == sweep);
  CHECK(scaling.isVisible());
  CHECK(scaling.table().model()->rowCount() == 20'000);
  CHECK(wait_for([&] { return scaling.curves().size() == 1; }));  // large sweeps are drawn in the background
  CHECK(scaling.curves()[0].points.size() == 20'000);
  CHECK(QSettings().value("recent").toStringList().front() == sweep);
  window.open_files({other, folder.filePath("none.csv")});
  settle(window);
  CHECK(window.failures() == 2);
  CHECK(window.notices().join("\n").contains("neither a sweep nor a validation"));
  CHECK(scaling.path() == sweep);
  CHECK(QSettings().value("recent").toStringList().front() == sweep);
  window.open_files({validation});
  settle(window);
  const auto& accuracy = *qobject_cast<AccuracyView*>(window.view("accuracy"));
  CHECK(accuracy.isVisible());
  CHECK(accuracy.points().size() == 1);
  // A cancelled file does not appear.
  window.open_files({sweep});
  window.loader().cancel();
  settle(window);
  CHECK(accuracy.isVisible());
}

TEST_CASE("Files that are dropped open") {
  MainWindow window;
  shown(window);
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(ring_trace())});
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  CHECK(enter.isAccepted());
  QDropEvent drop({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &drop);
  settle(window);
  CHECK(window.session().runs().size() == 1);
  CHECK(QSettings().value("recent").toStringList().front() == ring_trace());
}

TEST_CASE("A file is read again under its run's id") {
  const QTemporaryDir folder;
  const QString path = folder.filePath("run.json.gz");
  QFile::copy(ring_trace(), path);
  MainWindow window;
  shown(window);
  window.open_files({path});
  settle(window);
  const Session::RunPointer before = window.session().current();
  QFile::remove(path);
  QFile::copy(servers_trace(), path);
  window.loader().reload(before->id);
  settle(window);
  const Session::RunPointer after = window.session().current();
  CHECK(window.session().runs().size() == 1);
  CHECK(after->id == before->id);
  CHECK(after->timeline->processes.size() != before->timeline->processes.size());
}

// ----- what every command and control has

TEST_CASE("Every command has a text, a tooltip, a menu, and a shortcut that is its own") {
  MainWindow window;
  shown(window);
  std::set<const QAction*> in_menus;
  for (const QMenu* menu : window.menuBar()->findChildren<QMenu*>())
    for (const QAction* action : menu->actions()) in_menus.insert(action);
  std::map<std::string, std::vector<const QAction*>> by_keys;
  for (const QAction* action : commands_of(window)) {
    CAPTURE(action->text().toStdString());
    CHECK_FALSE(action->text().isEmpty());
    CHECK_FALSE(action->toolTip().isEmpty());
    CHECK_FALSE(action->shortcuts().isEmpty());
    CHECK(in_menus.count(action) == 1);
    for (const QKeySequence& keys : action->shortcuts())
      by_keys[keys.toString().toStdString()].push_back(action);
  }
  // Actions with the same shortcut conflict if it applies to the entire window, or if one view contains the
  // other.
  for (const auto& [keys, actions] : by_keys)
    for (std::size_t a = 0; a < actions.size(); ++a)
      for (std::size_t b = a + 1; b < actions.size(); ++b) {
        const auto* one = qobject_cast<QWidget*>(actions[a]->parent());
        const auto* other = qobject_cast<QWidget*>(actions[b]->parent());
        const bool window_wide = actions[a]->shortcutContext() == Qt::WindowShortcut ||
                                 actions[b]->shortcutContext() == Qt::WindowShortcut;
        CAPTURE(keys, actions[a]->text().toStdString(), actions[b]->text().toStdString());
        CHECK_FALSE((window_wide || one == other ||
                     (one && other && (one->isAncestorOf(other) || other->isAncestorOf(one)))));
      }
}

TEST_CASE("Every control has a name that can be read out") {
  MainWindow window;
  shown(window);
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    const bool control = qobject_cast<const QLineEdit*>(widget) || qobject_cast<const QComboBox*>(widget) ||
                         qobject_cast<const QAbstractItemView*>(widget) ||
                         qobject_cast<const QAbstractSpinBox*>(widget);
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    if (!control && button == nullptr) continue;
    // Parts of other controls are named after the control.
    if (widget->objectName().startsWith("qt_") || qobject_cast<const QComboBox*>(widget->parentWidget()) ||
        qobject_cast<const QAbstractSpinBox*>(widget->parentWidget()) ||
        QString(widget->metaObject()->className()).startsWith("QHeader") ||
        QString(widget->metaObject()->className()).contains("Private") ||
        QString(widget->parentWidget()->metaObject()->className()).contains("Private") ||
        QString(widget->metaObject()->className()).contains("CornerButton") ||
        qobject_cast<const QLineEdit*>(widget->parentWidget()) ||
        widget->parentWidget()->inherits("QTabBar") || widget->inherits("QComboBoxListView") ||
        widget->parentWidget()->inherits("QMenuBar"))
      continue;
    CAPTURE(widget->metaObject()->className(), widget->parentWidget()->metaObject()->className(),
            widget->objectName().toStdString());
    CHECK_FALSE((widget->accessibleName().isEmpty() && (button == nullptr || button->text().isEmpty())));
  }
}

TEST_CASE("The list of commands finds them") {
  MainWindow window;
  shown(window);
  CommandModel model(commands_of(window));
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  CHECK(model.rowCount() > 40);
  QTest::keyClick(&window, Qt::Key_F1);
  CommandList* list = nullptr;
  REQUIRE(wait_for([&] { return (list = window.findChild<CommandList*>()) != nullptr; }));
  auto* field = list->findChild<QLineEdit*>();
  QTest::keyClicks(field, "critical path");
  const bool before = window.state().shows_critical_path();
  QTest::keyClick(field, Qt::Key_Return);
  CHECK(wait_for([&] { return window.state().shows_critical_path() != before; }));
}
