// Tests what a run takes from its trace's otherData: the scenario, notes and changes that were simulated.
#include "gui/models/runs/run.hpp"
#include "gui/models/runs/run_facts.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;

namespace {

rehearse::gui::Run run_with(const std::string& other_data) {
  Timeline timeline;
  timeline.other_data = other_data;
  rehearse::gui::Run run;
  facts_of(timeline, run);
  return run;
}

}  // namespace

TEST_CASE("A trace tells its scenario, its notes and the changes that were simulated") {
  const rehearse::gui::Run run =
      run_with(R"({"scenario_text": "[model]\n", "result": {"notes": ["one", "two"], "remedies": [
    {"sets": ["strategy.tensor=4"], "why": "less", "step_time_s": 2, "samples_per_s": 8, "gain": 0.25,
     "memory_bytes": 1e9}]}})");
  CHECK(run.scenario_text == "[model]\n");
  CHECK(run.notes == std::vector<std::string>{"one", "two"});
  REQUIRE(run.remedies.size() == 1);
  CHECK(run.remedies[0].sets == std::vector<std::string>{"strategy.tensor=4"});
  CHECK(run.remedies[0].why == "less");
  CHECK(run.remedies[0].step_time_s == 2);
  CHECK(run.remedies[0].samples_per_s == 8);
  CHECK(run.remedies[0].gain == 0.25);
  CHECK(run.remedies[0].memory_bytes == 1e9);
}

TEST_CASE("What has another form in a trace is left out") {
  for (
      const char* other :
      {R"({})", R"({"result": 3})", R"({"result": {"notes": "one", "remedies": {}}})",
       R"({"result": {"notes": [1, null], "remedies": [3, {}, {"sets": []}, {"sets": ["a=1"], "gain": "much"}]}})",
       R"({"result": {"remedies": [{"sets": [4], "why": "x", "step_time_s": 2, "samples_per_s": 8, "gain": 0.1,
           "memory_bytes": 1}]}})"}) {
    CAPTURE(other);
    const rehearse::gui::Run run = run_with(other);
    CHECK(run.notes.empty());
    CHECK(run.remedies.empty());
  }
}
