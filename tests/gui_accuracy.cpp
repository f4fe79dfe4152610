// Tests the comparison of predictions with measurements: pairs of open runs, and the output of `rehearse
// validate`.
#include <QAbstractItemModelTester>

#include "gui/models/tables/accuracy_table.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

namespace rehearse::gui {
namespace {

std::shared_ptr<const Run> made(Run::Source source, const char* name, double step_s, const char* scenario) {
  auto run = std::make_shared<Run>();
  run->source = source;
  run->name = name;
  run->figures.step_time_s = step_s;
  run->scenario_text = scenario;
  return run;
}

}  // namespace

TEST_CASE("A measured run stands beside the predictions of its scenario") {
  using S = Run::Source;
  const AccuracyTable table =
      accuracy_of({made(S::predicted, "p", 1.1, "one"), made(S::measured, "m", 1, "one"),
                   made(S::measured, "n", 2, "two"), made(S::predicted, "q", 3, "three"),
                   made(S::predicted, "r", 0, "two"), made(S::profiler, "s", 1, "one"),
                   made(S::measured, "u", 1, ""), made(S::predicted, "v", 1, "")});
  REQUIRE(table.points.size() == 1);
  CHECK(table.points[0].run == "m");
  CHECK(table.points[0].error() == Approx(0.1));
}

TEST_CASE("Errors of a validation's file") {
  const std::string header =
      "run,topology,strategy,ranks,measured_step_s,least_s,most_s,predicted_step_s,sentence\n";
  const AccuracyTable table = accuracy_of(
      parse_csv(header + "a,star,\"data 4, ring\",4,1,0.9,1.1,1.02,why\n" + "b,star,ring,4,2,,,1.6,\n" +
                    "c,star,ring,4,0.5,,,0.53,\n" + "d,star,ring,4,-1,,,1,\n" + "e,star,ring,4,1,,,,\n",
                "v.csv"));
  REQUIRE(table.points.size() == 3);
  CHECK(table.problems ==
        std::vector<std::string>{"line 5: measured_step_s is \"-1\"; allowed: a number above 0",
                                 "line 6: predicted_step_s is \"\"; allowed: a number above 0"});
  const Errors errors = errors_of(table.points);
  CHECK(errors.median == Approx(0.06));
  CHECK(errors.worst == Approx(-0.2));
  CHECK(summary_of(table.points) == "3 runs: median error 6.0 %, worst -20.0 % (b).");
  CHECK(summary_of({table.points[0]}) == "1 run: error +2.0 % (a).");
  CHECK(summary_of({}).empty());
  CHECK(errors_of({table.points[0], table.points[2]}).median ==
        Approx(0.04));  // mean of the two in the middle

  ValueTable rows;
  const QAbstractItemModelTester tester(&rows, QAbstractItemModelTester::FailureReportingMode::Fatal);
  rows.set(rows_of(table.points));
  CHECK(rows.index(1, 1).data().toString() == "-20.0");
  CHECK(rows.index(1, 1).data(ValueTable::kToneRole).toInt() == static_cast<int>(Tone::notable));
  CHECK(rows.index(0, 1).data(Qt::ToolTipRole).toString() == "why");
  CHECK(rows.headerData(2, Qt::Horizontal, Qt::DisplayRole).toString() == "measured (s)");
  CHECK_THROWS_AS(accuracy_of(parse_csv("point,x\n", "v.csv")), InputError);
}

}  // namespace rehearse::gui
