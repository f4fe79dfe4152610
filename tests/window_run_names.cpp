// Checks the names of runs.
#include <QtTest>

#include <QTabBar>

#include "gui/views/scenario/number_field.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

ScenarioView& scenarios_of(MainWindow& window) {
  return *static_cast<ScenarioView*>(window.view("scenario"));
}

QStringList names_of(MainWindow& window) {
  QStringList names;
  for (const auto& run : window.session().runs()) names << QString::fromStdString(run->name);
  return names;
}

void set_number(ScenarioView& scenarios, const char* key, const QString& value) {
  auto& field = *qobject_cast<NumberField*>(scenarios.form().field(key));
  field.setFocus();
  field.selectAll();
  QTest::keyClicks(&field, value);
  QTest::keyClick(&field, Qt::Key_Return);
}

}  // namespace

TEST_CASE("Runs of a scenario that is changed and run again are named by what was changed") {
  MainWindow window;
  shown(window);
  ScenarioView& scenarios = scenarios_of(window);
  const auto run = [&] {
    const std::size_t before = window.session().runs().size();
    QTest::keyClick(&window, Qt::Key_R, Qt::ControlModifier);
    REQUIRE(wait_for([&] { return window.session().runs().size() == before + 1; }));
    settle(window);
  };
  scenarios.open_scenario(REHEARSE_TESTS_DIR "/../simulator/scenarios/mlp-ring.toml");
  run();
  set_number(scenarios, "training.micro_batch", "8");
  run();
  run();  // the same scenario again
  CHECK(names_of(window) ==
        QStringList{"mlp-ring", "mlp-ring, micro-batch 8", "mlp-ring, micro-batch 8 (2)"});
  CHECK(scenarios.findChild<QTabBar*>()->count() == 1);
  // A run that is duplicated extends the name of its base.
  scenarios.duplicate_run(window.session().runs()[1]->id);
  set_number(scenarios, "training.global_batch", "128");
  run();
  CHECK(names_of(window).last() == "mlp-ring, micro-batch 8, global batch 128");
}
