// The engine does not simulate links that never limit a flow. These tests compare runs without such links
// with runs of all links: the times must be equal.
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/random_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

TEST_CASE("links that never limit a flow change nothing") {
  RandomAxes random(7);
  for (int i = 0; i < 24; ++i) {
    const RandomFabric& fabric = kRandomFabrics[i % 4];
    const Scenario scenario = random.scenario(fabric, 8);
    INFO(scenario.text);
    const Plan plan = write_schedule(scenario);
    Run run;
    run.jobs.push_back({"job", {{plan.schedule, plan.schedule->repeats(1)}}, plan.endpoints});
    EngineOptions options = scenario.engine;
    options.fidelity = Fidelity::flow;
    options.fold = false;
    const Trace limiting = simulate_in_child(run, *scenario.cluster, options);
    Event harmless;  // an event keeps all links
    harmless.time_s = 1e6;
    harmless.endpoint = 0;
    run.events = {harmless};
    CHECK(worst_difference(limiting, simulate_in_child(run, *scenario.cluster, options)) < 1e-9);
  }
}
