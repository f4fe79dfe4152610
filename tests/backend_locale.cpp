// Tests that real runs under a locale with a decimal comma write results and records that any reader accepts.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/locales.hpp"

using namespace rehearse::test;

TEST_CASE("a run under a locale with a decimal comma gives JSON and a record that is read") {
  const Scratch scratch;
  const std::string scenario = std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/mlp-ring.toml";
  const std::string record = scratch.path("run.json"), turkish = "tr_TR";
  make_locale(scratch, turkish);
  const Outcome run = run_program("rehearse-run",
                                  "run " + scenario +
                                      " --transport local --set run.steps=2 --set run.learning_rate=0.125 "
                                      "--format json --trace " +
                                      record,
                                  under_locale(scratch, turkish));
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(nlohmann::json::parse(run.out)["step_time_s"].get<double>() > 0);
  CHECK(nlohmann::json::parse(read_file(record))["otherData"]["scenario_text"].get<std::string>().find(
            "learning_rate = 0.125") != std::string::npos);
  CHECK(run_rehearse("validate " + record, under_locale(scratch, turkish)).status == 0);
}
