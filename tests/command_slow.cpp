// Tests that a part slowed by [[cluster.slow]] is reported first, with its cost, if it holds up the step.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

std::string one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line, word;
  while (words >> word) line += (line.empty() ? "" : " ") + word;
  return line;
}

json simulated(const std::string& arguments) {
  const Outcome run = run_rehearse("simulate " + arguments + " --format json");
  CAPTURE(arguments, run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

const std::string kSlowedFabric =
    shipped_scenario("resnet50-ring") +
    " --set cluster.kind=leaf-spine --set cluster.nodes_per_leaf=4 --set cluster.oversubscription=2"
    " --set cluster.nic_gbps=2";
const std::string kServers =
    shipped_scenario("resnet50-ps-async") + " --set cluster.nodes=2 --set simulation.steps=1";

}  // namespace

TEST_CASE("a slow part that holds the step up is the bottleneck", "[release]") {
  struct Case {
    std::string scenario, slow;
    std::string sentence;  // start of the sentence
    std::size_t answer;    // index in slow_parts of what the sentence promises
  };
  const std::vector<Case> cases = {
      {kSlowedFabric, "{link=\"leaf0-spine0\",factor=0.1}", "link leaf0-spine0, slowed to 10 %", 0},
      {shipped_scenario("resnet50-ring"), "{link=\"node2.nic0\",factor=0.1}",
       "link node2.nic0, slowed to 10 %", 0},
      {shipped_scenario("bert-large-ring"), "{device=3,factor=0.5}", "node0.gpu3, slowed to 50 %", 0},
      // The first costs nothing compared with the second.
      {shipped_scenario("bert-large-ring"), "{device=1,factor=0.9},{device=3,factor=0.5}",
       "node0.gpu3, slowed to 50 %", 1},
      // Removing only one of them saves nothing.
      {shipped_scenario("bert-large-ring"), "{device=1,factor=0.5},{device=3,factor=0.5}",
       "2 slowed parts, the slowest node0.gpu1 at 50 %", 0},
      {shipped_scenario("bert-large-ring"), "{device=3,factor=0.8},{device=3,factor=0.5}",
       "node0.gpu3, slowed to 40 %", 0},
      {kServers, "{device=0,factor=0.3}", "node0.gpu0, slowed to 30 %", 0},
  };
  for (const Case& c : cases) {
    const std::string arguments = c.scenario + " --set 'cluster.slow=[" + c.slow + "]'";
    CAPTURE(arguments);
    const Outcome text = run_rehearse("simulate " + arguments);
    CAPTURE(text.out, text.err);
    CHECK(one_line(text.out).find("Bottleneck: " + c.sentence + ": at full speed the step would take ") !=
          std::string::npos);
    const json slow = simulated(arguments), whole = simulated(c.scenario + " --set 'cluster.slow=[]'");
    REQUIRE(slow.contains("slow_parts"));
    const json all = slow["slow_parts"][0], told = slow["slow_parts"][c.answer];
    const double step_s = slow["step_time_s"], whole_s = whole["step_time_s"];
    CHECK(all["step_time_s"].get<double>() == Approx(whole_s).epsilon(1e-9));
    CHECK(told["saved_s"].get<double>() == Approx(step_s - told["step_time_s"].get<double>()));
    CHECK(told["saved_s"].get<double>() > 0.05 * step_s);
  }
}

TEST_CASE("a slow part that costs little is not the bottleneck") {
  for (const std::string& slow :
       {std::string("{link=\"node2.nic0\",factor=0.99}"), std::string("{device=3,factor=2}"),
        std::string("{device=3,factor=0.99}")}) {
    CAPTURE(slow);
    const std::string arguments =
        shipped_scenario("bert-large-ring") + " --set 'cluster.slow=[" + slow + "]'";
    const Outcome text = run_rehearse("simulate " + arguments);
    CAPTURE(text.out, text.err);
    CHECK(text.status == 0);
    CHECK(text.out.find("full speed") == std::string::npos);
  }
  CHECK_FALSE(simulated(shipped_scenario("bert-large-ring")).contains("slow_parts"));
}
