// Checks sweeps in the real window: set up, run, watched, cancelled, plotted, their points opened, and saved.
#include <QtTest>

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSettings>
#include <QTemporaryDir>

#include "gui/models/tables/sweep_setup.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/tables/scaling_view.hpp"
#include "gui/views/tables/sweep_setup.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

struct Sweeping {
  Sweeping() {
    shown(window);
    window.open_files({REHEARSE_TESTS_DIR "/../simulator/scenarios/resnet50-ring.toml"});
    window.show_view("scaling");
    settle(window);
    REQUIRE(scaling.isVisible());
  }
  QAction& action(const QString& text) const {
    for (QAction* action : window.findChildren<QAction*>())
      if (action->text().remove('&') == text) return *action;
    FAIL("no action " << text.toStdString());
    return *window.findChildren<QAction*>().front();
  }
  template <class Widget>
  Widget& named(const QString& name) const {
    for (Widget* widget : scaling.findChildren<Widget*>())
      if (widget->accessibleName() == name) return *widget;
    FAIL("no widget " << name.toStdString());
    return *scaling.findChildren<Widget*>().front();
  }
  QString told() const { return named<QLabel>("Progress of the sweep").text(); }
  void vary(int place, const QString& key, const QString& values) {
    scaling.setup().set_key(place, key);
    scaling.setup().set_values(place, values);
  }
  void run() {
    action("Run the sweep").trigger();
    settle(window);
  }
  int points() const { return scaling.table().table().rowCount(); }

  MainWindow window;
  ScalingView& scaling = *static_cast<ScalingView*>(window.view("scaling"));
  ScenarioView& scenario = *static_cast<ScenarioView*>(window.view("scenario"));
};

}  // namespace

TEST_CASE("A sweep of two keys is run from the window, and a click on a point opens it as a run") {
  Sweeping s;
  auto& key = s.named<QComboBox>("Key of the scenario that varies, first");
  auto& values = s.named<QLineEdit>("Its values, first");
  key.lineEdit()->setFocus();
  QTest::keyClicks(key.lineEdit(), "cluster.nodes");
  REQUIRE(wait_for([&] { return values.text() == "1..8*2"; }));  // proposed around the scenario's value
  values.setText("2,4,8");
  s.vary(1, "strategy.all_reduce", "ring,tree");
  QTest::keyClick(&values, Qt::Key_Return);
  CHECK(s.action("Cancel the sweep").isEnabled());
  CHECK_FALSE(s.action("Run the sweep").isEnabled());
  settle(s.window);
  CHECK(s.window.failures() == 0);
  CHECK(s.told().startsWith("6 of 6 points: 6 computed now"));
  CHECK(s.action("Run the sweep").isEnabled());
  REQUIRE(s.points() == 6);
  s.scaling.set_axis("cluster.nodes");
  REQUIRE(s.scaling.curves().size() == 2);
  CHECK(s.scaling.curves()[0].name == "all_reduce ring");
  CHECK(s.scaling.curves()[1].name == "all_reduce tree");
  CHECK(s.scaling.curves()[0].points.size() == 3);
  // A file in a temporary folder is not listed as a recent file.
  CHECK_FALSE(QSettings().value("recent").toStringList().contains(s.scaling.path()));

  s.scaling.set_figure(SweepFigure::step_time);
  QTest::qWait(50);
  const CurvePoint point = s.scaling.curves()[1].points[1];  // tree, 4 nodes
  const auto at = s.scaling.place_of(static_cast<int>(point.row));
  REQUIRE(at);
  auto* plot = s.named<QAbstractScrollArea>("Curves of the sweep").viewport();
  const auto click = [&] {
    QTest::mouseClick(plot, Qt::LeftButton, Qt::NoModifier, plot->mapFrom(&s.scaling, *at));
    settle(s.window);
  };
  click();
  REQUIRE(s.window.session().runs().size() == 1);
  const Session::RunPointer run = s.window.session().current();
  CHECK(run->name == "resnet50-ring, nodes 4, all-reduce tree");
  CHECK(run->figures.step_time_s == Approx(point.y).epsilon(1e-6));
  CHECK(s.scaling.table().current_row() == static_cast<int>(point.row));
  s.window.show_view("scaling");
  click();
  CHECK(s.window.session().runs().size() == 1);
}

TEST_CASE("Values that are words stand beside each other") {
  Sweeping s;
  s.vary(0, "strategy.all_reduce", "ring,tree,halving-doubling");
  s.run();
  REQUIRE(s.points() == 3);
  REQUIRE(s.named<QComboBox>("Quantity on the horizontal axis").currentText() == "strategy.all_reduce");
  REQUIRE(s.scaling.curves().size() == 1);
  for (int i = 0; i < 3; ++i) CHECK(s.scaling.curves()[0].points[static_cast<std::size_t>(i)].x == i + 1);
}

TEST_CASE("Points appear while the sweep runs, and stay when it is cancelled") {
  Sweeping s;
  s.vary(0, "training.global_batch", "2048..2048000+2048");
  s.action("Run the sweep").trigger();
  REQUIRE(wait_for([&] { return s.points() > 0; }));
  CHECK(s.scaling.setup().busy());
  CHECK(s.told().startsWith("Sweeping resnet50-ring: "));
  s.action("Cancel the sweep").trigger();
  settle(s.window);
  CHECK(s.window.failures() == 0);
  CHECK(s.told().startsWith("Cancelled after "));
  CHECK(s.told().endsWith("the points so far are kept"));
  CHECK(s.points() > 0);
  CHECK(s.points() < 1000);
  CHECK(s.action("Run the sweep").isEnabled());
}

TEST_CASE("What is wrong with a sweep is told whole") {
  Sweeping s;
  s.vary(0, "training.micro_batch", "1,,2");
  s.run();
  CHECK(s.told() ==
        "--vary training.micro_batch=1,,2: a value is empty; allowed: values with commas between them");
  s.vary(0, "training.micro_batsh", "1,2");
  s.run();
  CHECK(s.told().contains("did you mean \"micro_batch\"?"));
  s.vary(0, "training.micro_batch", "");
  s.run();
  CHECK(s.told().startsWith("--vary training.micro_batch"));
  s.vary(0, "", "");
  s.run();
  CHECK(s.told().startsWith("nothing varies; allowed: --vary key=a,b,c"));
  CHECK(s.points() == 0);

  // Points that fail are reported with the others.
  s.vary(0, "training.micro_batch", "32,63");
  s.run();
  CHECK(s.told().startsWith("2 of 2 points: 2 computed now"));
  CHECK(s.told().contains("1 failed"));
  CHECK(s.told().contains("training.global_batch is 2048; allowed: "));
  CHECK(s.points() == 2);
}

TEST_CASE("A sweep is saved, and points of a file whose scenario is not known are not opened") {
  QTemporaryDir folder;
  const QString path = folder.filePath("nodes.csv");
  {
    Sweeping s;
    s.vary(0, "cluster.nodes", "4,8");
    CHECK_FALSE(s.action("Save the sweep...").isEnabled());
    s.run();
    CHECK(s.action("Save the sweep...").isEnabled());
    CHECK(s.scaling.save(path) == "");
    CHECK(QSettings().value("recent").toStringList().contains(path));
    CHECK(s.scaling.save(folder.filePath("none/x.csv")).contains("cannot be written"));
  }
  Sweeping s;
  s.window.open_files({path});
  settle(s.window);
  REQUIRE(s.points() == 2);
  const_cast<TableView&>(s.scaling.table()).select_row(1);
  s.action("Open the point as a run").trigger();
  CHECK(s.window.notices().last().startsWith("The scenario of these points is unknown"));
  CHECK(s.window.session().runs().empty());
}

TEST_CASE("Values are proposed about what the scenario has") {
  const std::vector<ScenarioKey> keys = {{"strategy.schedule", true, false, false, {"\"1f1b\"", "\"gpipe\""}},
                                         {"x.kind", true, false, false, {"\"a\"", "\"b\""}},
                                         {"cluster.slow", true, true, true, {}}};
  const auto proposed = [&](const char* key, const char* now) {
    return proposed_values(key, {{key, now}}, keys);
  };
  CHECK(proposed("cluster.nodes", "16") == "1..16*2");
  CHECK(proposed("cluster.nodes", "1") == "1..8*2");
  CHECK(proposed("cluster.nodes", "96") == "24,48,96,192");
  CHECK(proposed("strategy.pipeline", "7") == "7,14");
  CHECK(proposed("training.micro_batch", "4") == "1..8*2");
  CHECK(proposed("training.global_batch", "2048") == "2048,4096,8192");
  CHECK(proposed("x.kind", "a") == "a,b");
  CHECK(proposed("x.unknown", "") == "");
  CHECK(proposed("training.micro_batch", "") == "");
  CHECK(proposed("strategy.all_reduce", "").contains("ring,"));
  CHECK(sweep_keys(keys).first() == "cluster.nodes");
  CHECK(sweep_keys(keys).contains("x.kind"));
  CHECK_FALSE(sweep_keys(keys).contains("cluster.slow"));
}
