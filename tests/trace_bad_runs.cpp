// Checks the exact error messages for invalid recorded runs.
#include "simulator/report/recorded_run.hpp"
#include "tests/bad_inputs.hpp"

using namespace rehearse;

TEST_CASE("bad recorded runs are refused with the golden words") {
  test::check_bad_inputs("runs", ".json", 20, [](const std::string& path) { read_run(path); });
}

TEST_CASE("the run that the bad ones are made from is a good one") {
  const RecordedRun run = read_run(std::string(REHEARSE_TESTS_DIR) + "/golden/runs/two-ranks.json");
  REQUIRE(run.measured);
  CHECK(run.trace.classes.size() == 2);
  CHECK(run.trace.spans.size() == 2 * run.plan.schedule->programs.front().ops.size());
  CHECK(evaluate_measured(run.trace, run.scenario, run.plan, run.measured->warmup_steps).metrics.step_time_s >
        0);
}
