// Tests the cost of a step and of the training that a scenario asks for: from the trace's result, from its
// scenario, and compared with another run's.
#include <QStringList>

#include "gui/models/comparison/comparison.hpp"
#include "gui/models/comparison/figures.hpp"
#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

RunFigures figures_with(const std::string& cost) {
  TimelineBuilder builder;
  builder.process("rank 0").track("compute");
  builder.span("f", 0, 10'000'000, Kind::compute).step(0);
  builder.timeline().writer = Timeline::Writer::rehearse;
  builder.timeline().other_data = R"({"generator": "rehearse", "result": {"step_time_s": 0.01,
    "samples_per_s": 3200, )" + cost +
                                  "}}";
  return figures_of(builder.done());
}

std::shared_ptr<const Run> run_with(const std::string& name, const CostFigures& cost) {
  auto run = std::make_shared<Run>();
  run->name = name;
  run->figures.step_time_s = 0.1;
  run->figures.samples_per_s = 640;
  run->figures.cost = cost;
  return run;
}

QStringList row(const Runs& runs, const QString& name) {
  QStringList cells;
  const TableData table = compared_figures(runs, names_of(runs));
  for (const auto& found : table.rows)
    if (found.front().text == name)
      for (std::size_t i = 1; i < found.size(); ++i) cells << found[i].text;
  return cells;
}

}  // namespace

TEST_CASE("Costs are read from the trace's result, as far as they are known") {
  const CostFigures known =
      figures_with(R"("cost_per_step": 43.0, "currency": "USD", "energy_wh_per_step": 14247.0,
    "target": {"samples": 146484375.0, "tokens": 3e11, "steps": 47684, "seconds": 3450445.9,
               "device_hours": 736095.1, "cost": 2053705.4, "energy_kwh": 679392.2, "carbon_kg": 1})")
          .cost;
  CHECK(known.currency == "USD");
  CHECK(known.step_money == 43);
  CHECK(known.step_energy_wh == 14247);
  CHECK(known.samples == 146484375);
  CHECK(known.tokens == 3e11);
  CHECK(known.seconds == 3450445.9);
  CHECK(known.device_hours == 736095.1);
  CHECK(known.money == 2053705.4);
  CHECK(known.energy_kwh == 679392.2);
  for (const char* broken : {R"("cost_per_step": null, "currency": "USD", "target": null)",
                             R"("cost_per_step": "x", "currency": 5, "target": [1])", R"("mfu": 0)",
                             R"("target": {"samples": "many", "cost": null})"}) {
    CAPTURE(broken);
    const CostFigures unknown = figures_with(broken).cost;
    CHECK(unknown.step_money == 0);
    CHECK(unknown.samples == 0);
    CHECK(unknown.money == 0);
  }
}

TEST_CASE("Costs stand beside each other where they are of one training and one currency") {
  CostFigures cost;
  cost.currency = "USD";
  cost.step_money = 40;
  cost.samples = 1000;
  cost.tokens = 3e11;
  cost.seconds = 10 * 86'400.0;
  cost.device_hours = 2400;
  cost.money = 8000;
  CostFigures half = cost;
  half.step_money = 20;
  half.seconds /= 2;
  half.device_hours /= 2;
  half.money /= 2;
  const Runs both = {run_with("a", cost), run_with("b", half)};
  CHECK(row(both, "cost per step (USD)") == QStringList{"40.00", "20.00", "-20.0", "-50.0"});
  CHECK(row(both, "days to 300 G tokens") == QStringList{"10.00", "5.000", "-5.00", "-50.0"});
  CHECK(row(both, "device-hours to 300 G tokens") == QStringList{"2,400", "1,200", "-1,200", "-50.0"});
  CHECK(row(both, "cost to 300 G tokens (USD)") == QStringList{"8,000", "4,000", "-4,000", "-50.0"});
  half.currency = "EUR";
  const Runs currencies = {run_with("a", cost), run_with("b", half)};
  CHECK(row(currencies, "cost per step (USD)").isEmpty());
  CHECK(row(currencies, "cost to 300 G tokens (USD)").isEmpty());
  CHECK_FALSE(row(currencies, "days to 300 G tokens").isEmpty());
  half.samples = 2000;
  CHECK(row({run_with("a", cost), run_with("b", half)}, "days to 300 G tokens").isEmpty());
}
