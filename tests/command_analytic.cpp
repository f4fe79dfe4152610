// Tests that closed forms, which ignore contention, are replaced by flows where a link could not carry its
// load.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

std::string run(const std::string& name, const std::string& arguments) {
  const Outcome outcome =
      run_rehearse("simulate " + std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/" + name +
                   ".toml --format json " + arguments);
  CAPTURE(name, arguments, outcome.err);
  REQUIRE(outcome.status == 0);
  return outcome.out;
}

}  // namespace

TEST_CASE("no link is used beyond its capacity, at analytic fidelity neither") {
  struct Case {
    std::string name, arguments;
    bool shared;  // closed forms alone would use a link beyond its capacity
  };
  const std::vector<Case> cases = {
      {"resnet50-ps", "--set cluster.nic_gbps=2", true},
      {"resnet50-ps", "--set cluster.nic_gbps=2 --set simulation.steps=3", true},
      {"bert-large-ps", "", true},
      {"resnet50-ps", "", false},
      {"resnet50-ring", "--set cluster.nic_gbps=2", false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name, c.arguments);
    const std::string text = run(c.name, c.arguments + " --set simulation.fidelity=analytic");
    CHECK(text == run(c.name, c.arguments + " --set simulation.fidelity=analytic"));
    const json result = json::parse(text);
    CHECK(result["network"]["busiest_link"]["utilization"].get<double>() <= 1 + 1e-9);
    const std::string fidelity = result["engine"]["fidelity"];
    CHECK((fidelity.find("flow") != std::string::npos) == c.shared);
    CHECK((result["notes"].dump().find("Fidelity \\\"analytic\\\" leaves out contention") !=
           std::string::npos) == c.shared);
    if (!c.shared) continue;
    // Contention is where the closed forms were wrong: now the step is close to that with flows everywhere.
    const double flows_s = json::parse(run(c.name, c.arguments))["step_time_s"];
    CHECK(result["step_time_s"].get<double>() == Approx(flows_s).epsilon(0.1));
  }
}
