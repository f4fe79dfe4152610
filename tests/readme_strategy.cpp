// Runs the strategy that simulator/README.md prints, compiled and listed as its section says
// (readme_strategy.cmake).
#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/show/show.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Prediction predicted(int ranks, const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"strategy.gradients=gossip", fmt::format("cluster.nodes={}", ranks),
                                  fmt::format("training.global_batch={}", 16 * ranks),
                                  "strategy.data=" + std::to_string(ranks)};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const std::string shipped = std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/mlp-ring.toml";
  return predict(read_scenario_file(shipped, all), Where::child);
}

std::string refusal(int ranks, const std::string& override) {
  try {
    predicted(ranks, {override});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the README's strategy runs: a step is compute, and an exchange with the neighbours") {
  // The perceptron's 266,610 parameters over 1 Gbit/s, of whose frames a share is payload: every rank sends
  // its weights to 2 x reach neighbours, and its card is the bound.
  const double weight_bytes = 4.0 * (784 * 300 + 300 + 300 * 100 + 100 + 100 * 10 + 10);
  for (const int reach : {1, 2, 3}) {
    CAPTURE(reach);
    const Prediction p =
        predicted(8, {fmt::format("strategy.gossip.reach={}", reach), "cluster.latency_us=0"});
    CHECK(p.metrics.breakdown.exposed_communication_s ==
          Approx(2 * reach * weight_bytes / (1e9 / 8 * 1448 / 1514)).epsilon(1e-6));
    CHECK(p.metrics.step_time_s == Approx(p.metrics.breakdown.total_s()).epsilon(1e-9));
    CHECK(p.metrics.memory.buffers == Approx(2 * reach * weight_bytes));
    CHECK(p.metrics.network_bytes_per_step == Approx(8 * 2 * reach * weight_bytes));
    std::ostringstream text;
    write_text(p.result(), text);
    CHECK(text.str().find(fmt::format("weights averaged with {} neighbours", 2 * reach)) !=
          std::string::npos);
  }
  const std::vector<std::string> pipeline = {"cluster.nodes=8", "strategy.data=4", "strategy.pipeline=2"};
  const Prediction folded = predicted(8, pipeline);
  CHECK(folded.trace.engine.classes == 2);
  std::vector<std::string> unfolded = pipeline;
  unfolded.push_back("simulation.fold=false");
  CHECK(predicted(8, unfolded).metrics.step_time_s == Approx(folded.metrics.step_time_s).epsilon(1e-9));
}

TEST_CASE("the README's strategy is listed and shown, and refuses what it cannot do") {
  std::ostringstream list, show;
  run_list("strategies", list);
  run_show("gossip", show);
  CHECK(list.str().find("gossip") != std::string::npos);
  CHECK(show.str().find("reach = 1") != std::string::npos);
  CHECK(refusal(4, "strategy.gossip.reach=2")
            .find("strategy.gossip.reach is 2; allowed: less than half of the 4 ranks") != std::string::npos);
  CHECK(refusal(4, "strategy.gossip.raech=1").find("did you mean \"reach\"") != std::string::npos);
}
