// Searches plans in the real window, and checks what is shown and can be done with them.
#include <QtTest>

#include <QAbstractScrollArea>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QSettings>
#include <QTemporaryDir>
#include <QToolButton>
#include <QToolTip>
#include <fstream>

#include "gui/models/tables/plan_words.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/tables/plan_coordinates.hpp"
#include "gui/views/tables/plan_scatter.hpp"
#include "gui/views/tables/plan_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;

namespace {

const QString kFile = REHEARSE_TESTS_DIR "/plans/gpt3-175b.json";
using Numbers = std::vector<std::size_t>;

QString small_scenario(const QString& comment = {}) {
  QFile file(REHEARSE_TESTS_DIR "/../simulator/scenarios/mlp-ring.toml");
  REQUIRE(file.open(QIODevice::ReadOnly));
  return QString::fromUtf8(file.readAll()) + comment + "\n";
}

struct Planning {
  explicit Planning(const QString& program = REHEARSE_TESTS_DIR "/plans/rehearse") {
    qputenv("REAL_REHEARSE", REHEARSE_BIN_DIR "/rehearse");
    shown(window);
    scenario.runner().set_program(program);
  }
  QAction& action(const QString& text) const {
    for (QAction* action : window.findChildren<QAction*>())
      if (action->text().remove('&') == text) return *action;
    FAIL("no action " << text.toStdString());
    return *window.findChildren<QAction*>().front();
  }
  void open() {
    window.open_files({kFile});
    settle(window);
    REQUIRE(plan.isVisible());
    QTest::qWait(50);
  }
  Numbers shown_plans() const {
    Numbers numbers;
    for (std::size_t i = 0; i < plan.shown_plans().size(); ++i)
      if (plan.shown_plans()[i]) numbers.push_back(i);
    return numbers;
  }
  std::vector<int> selected() { return plan.table().selected_rows(); }

  MainWindow window;
  ScenarioView& scenario = *static_cast<ScenarioView*>(window.view("scenario"));
  PlanView& plan = *static_cast<PlanView*>(window.view("plan"));
};

QString told(const QWidget& view, const QString& name) {
  for (const QLabel* label : view.findChildren<QLabel*>())
    if (label->accessibleName() == name) return label->isVisible() ? label->text() : QString();
  FAIL("no label " << name.toStdString());
  return {};
}

void press(QWidget& widget, QPoint at, Qt::KeyboardModifiers keys = Qt::NoModifier) {
  QTest::mouseClick(&widget, Qt::LeftButton, keys, at);
}

void drag(QWidget& widget, QPoint from, QPoint to) {
  QTest::mousePress(&widget, Qt::LeftButton, Qt::NoModifier, from);
  // QTest moves the mouse without a pressed button, so send an event with one.
  QMouseEvent move(QEvent::MouseMove, to, widget.mapToGlobal(to), Qt::NoButton, Qt::LeftButton,
                   Qt::NoModifier);
  QApplication::sendEvent(&widget, &move);
  QTest::mouseRelease(&widget, Qt::LeftButton, Qt::NoModifier, to);
}

std::size_t axis_named(const PlanCoordinates& view, const QString& title) {
  for (std::size_t i = 0; i < view.axes().size(); ++i)
    if (view.axes()[i].title == title) return i;
  FAIL("no axis " << title.toStdString());
  return 0;
}

}  // namespace

TEST_CASE("The best plan is searched for the text as it stands, and two plans are opened and compared") {
  QStringList progress;
  Planning p;
  p.scenario.set_text(small_scenario(), "mine");
  QObject::connect(&p.scenario.runner(), &CommandRunner::progressed, &p.scenario,
                   [&] { progress << told(p.scenario, "Progress and result of the run"); });
  p.action("Find the best plan").trigger();
  settle(p.window);
  CHECK(p.window.failures() == 0);
  const QStringList searching = progress.filter("simulated 2; best 20.1 s");
  REQUIRE_FALSE(searching.isEmpty());
  CHECK(searching.front().startsWith("Searching plans for mine: "));
  REQUIRE(p.plan.isVisible());
  CHECK(told(p.plan, "Progress of the search").isEmpty());
  CHECK(told(p.plan, "Result of the search").startsWith("mine: tensor 8 x pipeline 8 x data 16"));
  CHECK(p.plan.plans().plans.size() == 19);
  CHECK(p.selected() == std::vector<int>{0});
  CHECK_FALSE(QSettings().value("recent").toStringList().contains(p.plan.path()));

  p.plan.table().toggle_row(1);
  REQUIRE(p.selected() == std::vector<int>{0, 1});
  p.action("Open plans as timelines").trigger();
  settle(p.window);
  REQUIRE(p.window.session().runs().size() == 2);
  CHECK(p.window.session().runs()[0]->name == "mine, plan 1");
  CHECK(p.window.session().runs()[1]->name == "mine, plan 2");
  CHECK(p.window.session().shown().size() == 2);
  CHECK(p.window.session().runs()[1]->scenario_text.find("all_reduce = \"tree\"") != std::string::npos);
  CHECK(p.window.view("compare")->isVisible());
  REQUIRE(wait_for([&] {
    for (const QLabel* label : p.window.view("compare")->findChildren<QLabel*>())
      if (label->text().contains("slower") || label->text().contains("faster")) return true;
    return false;
  }));

  p.window.show_view("plan");
  p.action("Change the plan's scenario").trigger();
  CHECK(p.scenario.draft().name() == "mine, plan 1");
  CHECK(p.scenario.draft().path().isEmpty());
  CHECK(p.scenario.draft().text().contains("preset = \"mlp\""));
}

TEST_CASE("A search is cancelled from the plans' view, and nothing comes of it") {
  Planning p;
  p.scenario.set_text(small_scenario("# endless"), "mine");
  p.window.show_view("plan");
  p.scenario.plan();
  REQUIRE(wait_for([&] { return told(p.plan, "Progress of the search").contains("best 20.1 s"); }));
  CHECK_FALSE(p.window.settled());
  QToolButton* cancel = nullptr;
  for (QToolButton* button : p.plan.findChildren<QToolButton*>())
    if (button->text() == "Cancel the search") cancel = button;
  REQUIRE(cancel);
  QTest::mouseClick(cancel, Qt::LeftButton);
  settle(p.window);
  CHECK(told(p.scenario, "Progress and result of the run").contains("mine: cancelled"));
  CHECK(told(p.plan, "Progress of the search").isEmpty());
  CHECK(p.plan.path().isEmpty());
  CHECK(p.window.failures() == 0);
}

TEST_CASE("A search that is refused is told at its line") {
  Planning p;
  p.scenario.set_text(small_scenario("# refused"), "mine");
  p.scenario.plan();
  settle(p.window);
  CHECK(p.window.failures() == 1);
  CHECK(p.window.notices().last().contains("training.global_batch is 63"));
  CHECK(p.scenario.editor().error_line() == 6);
  // A check that ends later, and finds nothing wrong, leaves the mark.
  const auto told_text = [&] { return told(p.scenario, "Whether the scenario can be run"); };
  p.scenario.set_text(small_scenario("# refused "), "mine");
  REQUIRE(wait_for([&] { return p.scenario.editor().error_line() == 0 && !told_text().contains("Line "); }));
  p.scenario.set_text(small_scenario("# refused"), "mine");
  CHECK(wait_for([&] { return p.scenario.editor().error_line() == 6 && told_text().contains("Line 6"); }));
  // A plan can be searched even if the scenario's own strategy cannot run.
  p.scenario.set_text(small_scenario().replace("data = 4", "data = 3"), "wrong");
  REQUIRE(wait_for([&] { return told(p.scenario, "Whether the scenario can be run").contains("Line "); }));
  p.scenario.plan();
  settle(p.window);
  CHECK(p.plan.isVisible());
}

TEST_CASE("Files of plans open by name and by dropping, and are saved with their scenarios") {
  Planning p;
  CHECK_FALSE(p.action("Save plans...").isEnabled());
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(kFile)});
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&p.window, &enter);
  QDropEvent drop({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&p.window, &drop);
  settle(p.window);
  REQUIRE(p.plan.path() == kFile);
  CHECK(p.plan.isVisible());
  CHECK(p.window.session().runs().empty());
  CHECK(QSettings().value("recent").toStringList().front() == kFile);
  CHECK(told(p.plan, "Result of the search").startsWith("gpt3-175b: "));

  const QTemporaryDir folder;
  const QString broken = folder.filePath("plan.json");
  std::ofstream(broken.toStdString()) << "{\"plans\": [{}]}";
  p.window.open_files({broken});
  settle(p.window);
  CHECK(p.window.failures() == 1);
  CHECK(p.window.notices().last().contains("plans[0].settings is missing"));
  CHECK(p.plan.path().toStdString() == kFile.toStdString());  // unchanged

  // The scenarios of this file do not exist.
  p.action("Open plans as timelines").trigger();
  CHECK(p.window.failures() == 2);
  CHECK(p.window.notices().last().contains("plan-1.toml: there is no such file"));
  CHECK_THROWS(p.plan.save_plans(folder.path()));

  p.scenario.set_text(small_scenario(), "mine");
  p.scenario.plan();
  settle(p.window);
  const QString into = folder.filePath("kept");
  p.plan.save_plans(into);
  CHECK(QDir(into).entryList(QDir::Files).size() == 15);
  CHECK(read_plans(into.toStdString() + "/plan.json").plans[0].file == into.toStdString() + "/plan-1.toml");
  p.plan.save_plans(QFileInfo(p.plan.path()).path());  // onto itself

  const QString none = folder.filePath("none.json");
  std::ofstream(none.toStdString()) << "{\"scenario\": \"small\", \"plans\": []}";
  p.window.open_files({none});
  settle(p.window);
  CHECK(told(p.plan, "Result of the search") == "small: no plan was found that can be run.");
  CHECK_FALSE(p.action("Open plans as timelines").isEnabled());
  CHECK(p.plan.table().model()->rowCount() == 0);
  CHECK_FALSE(p.plan.grab().isNull());
}

TEST_CASE("The table sorts by any column, and the filters leave the same plans everywhere") {
  Planning p;
  p.open();
  const QAbstractItemModel& rows = *p.plan.table().model();
  CHECK(rows.rowCount() == 19);
  for (int column = 0; column < rows.columnCount(); ++column) {
    p.plan.table().sortByColumn(column, Qt::DescendingOrder);
    CHECK(rows.rowCount() == 19);
  }
  p.plan.table().sortByColumn(1, Qt::DescendingOrder);  // step time
  CHECK(rows.index(0, 0).data().toString() == "plan 14");
  QTest::keyClicks(&p.plan.filter_field(), "interleaved tensor=8");
  CHECK(p.shown_plans() == Numbers{0, 1, 3, 4, 17});
  CHECK(rows.rowCount() == 5);
  CHECK(told(p.plan, "Number of plans shown") == "5 of 19");
  p.action("Only plans that fit").trigger();
  CHECK(rows.rowCount() == 4);
  p.action("Only Pareto-optimal plans").trigger();
  CHECK(p.shown_plans() == Numbers{0, 1, 4});
  CHECK(p.plan.scatter().front() == Numbers{0, 1, 4});
  p.action("Show all plans").trigger();
  CHECK(rows.rowCount() == 19);
  CHECK(p.plan.filter_field().text().isEmpty());
  CHECK_FALSE(p.action("Only plans that fit").isChecked());
  p.action("Only simulated plans").trigger();
  CHECK(rows.rowCount() == 15);
}

TEST_CASE("A point is clicked, left by keys, and told, and figures are chosen") {
  Planning p;
  p.open();
  PlanScatter& scatter = p.plan.scatter();
  QWidget& points = *scatter.plot().viewport();
  const auto at = [&](std::size_t plan) { return points.mapFrom(&scatter, *scatter.place_of(plan)); };
  CHECK(scatter.front() == Numbers{0, 1, 4, 7, 9, 11, 13});
  press(points, at(12));
  CHECK(p.selected() == std::vector<int>{12});
  CHECK(QToolTip::text().startsWith("Plan 13, 1,024 devices:\ntensor 8 x pipeline 4 x data 32"));
  press(points, at(16), Qt::ControlModifier);
  CHECK(p.selected() == std::vector<int>{12, 16});
  press(points, at(13));
  scatter.plot().setFocus();
  QTest::keyClick(&scatter.plot(), Qt::Key_Left);  // 36.0 s after 41.2 s
  CHECK(p.selected() == std::vector<int>{15});
  QTest::keyClick(&scatter.plot(), Qt::Key_Up, Qt::ShiftModifier);  // the next by memory: plan 9
  CHECK(p.selected() == std::vector<int>{12, 15});
  scatter.set_figures(PlanFigure::mfu, PlanFigure::cost);
  CHECK(scatter.front() == Numbers{0});  // has the highest MFU and the lowest cost
  CHECK_FALSE(scatter.place_of(17));     // its MFU is unknown
  CHECK_FALSE(scatter.place_of(99));
}

TEST_CASE("Ranges of axes are dragged or set by keys, and leave the plans within") {
  Planning p;
  p.open();
  PlanCoordinates& view = p.plan.coordinates();
  const std::size_t pipeline = axis_named(view, "pipeline");  // 4 to 64
  drag(view, view.place_of(pipeline, 0.9).toPoint(), view.place_of(pipeline, 1).toPoint());
  CHECK(p.shown_plans() == Numbers{11, 15});
  CHECK(p.plan.table().model()->rowCount() == 2);
  press(view, view.place_of(pipeline, 0.5).toPoint());  // removes the range
  CHECK(p.shown_plans().size() == 19);
  CHECK(view.ranges().empty());

  view.setFocus();
  for (std::size_t i = 0; i < view.axes().size(); ++i) QTest::keyClick(&view, Qt::Key_Left);
  QTest::keyClick(&view, Qt::Key_Up, Qt::ShiftModifier);  // tensor from 2 on
  REQUIRE(view.ranges().size() == 1);
  CHECK(p.shown_plans().size() == 18);
  QTest::keyClick(&view, Qt::Key_Down);  // to 8
  CHECK(p.shown_plans().size() == 17);
  for (int i = 0; i < 9; ++i) QTest::keyClick(&view, Qt::Key_Down);  // 1 is the least
  CHECK(p.shown_plans() == Numbers{15});
  QTest::keyClick(&view, Qt::Key_Right);
  QTest::keyClick(&view, Qt::Key_Down);
  CHECK(view.ranges().size() == 2);
  QTest::keyClick(&view, Qt::Key_Delete);
  CHECK(view.ranges().size() == 1);
  QTest::keyClick(&view, Qt::Key_Escape);
  CHECK(p.shown_plans().size() == 19);

  // A click between two axes selects a line.
  const std::size_t tensor = axis_named(view, "tensor");
  const QPointF from = view.place_of(tensor, view.axes()[tensor].places[13]),
                to = view.place_of(tensor + 1, view.axes()[tensor + 1].places[13]);
  press(view, ((from + to) / 2).toPoint());
  CHECK(p.selected() == std::vector<int>{13});
}

TEST_CASE("A plan without a scenario is named, and not run") {
  Planning p;
  p.open();
  p.plan.table().select_row(17);
  CHECK_FALSE(p.action("Open plans as timelines").isEnabled());
  emit p.plan.scatter().activated();
  CHECK(p.window.notices().last() == "The file has no scenario for: too large 1");
  CHECK_FALSE(p.scenario.runner().busy());
  CHECK(p.scenario.runner().queued() == 0);
  p.plan.table().selectAll();
  p.action("Open plans as timelines").trigger();
  CHECK(p.window.notices().last().contains("allowed: at most 8 at once"));
}

TEST_CASE("The real program's plans open") {
  QProcess asked;
  asked.start(REHEARSE_BIN_DIR "/rehearse", {"plan"});
  REQUIRE(asked.waitForFinished(kPatienceMs));
  if (asked.readAllStandardError().contains("unknown subcommand")) {
    WARN("rehearse has no command plan");
    return;
  }
  Planning p(REHEARSE_BIN_DIR "/rehearse");
  p.scenario.set_text(small_scenario(), "mine");
  p.scenario.plan();
  settle(p.window);
  INFO(p.window.notices().join('\n').toStdString());
  REQUIRE(p.window.failures() == 0);
  REQUIRE_FALSE(p.plan.plans().plans.empty());
  CHECK(p.plan.isVisible());
  CHECK(p.plan.plans().plans[0].step_time_s > 0);
  p.plan.table().select_row(0);
  p.action("Open plans as timelines").trigger();
  settle(p.window);
  REQUIRE(p.window.session().runs().size() == 1);
  CHECK(p.window.session().runs()[0]->figures.step_time_s ==
        Approx(p.plan.plans().plans[0].step_time_s).epsilon(0.01));
}
