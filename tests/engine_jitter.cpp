// Tests computations of random length: the moments of their factors, and steps against expected maxima.
#include <fmt/format.h>

#include <cmath>

#include "simulator/costs/jitter.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/jittered_steps.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kPasses = 0.030;  // s: forward and backward pass of a micro-batch

// Ranks that wait for each other's gradients, which take no time, at the end of each step.
Metrics jittered(int ranks, int microbatches, const std::string& jitter, int seed = 1) {
  const std::string text = fmt::format(
      "[model.profiled]\nstages = 1\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = 8\n"
      "p2p_bytes = 1\nparameters = 1\noptimizer_ms = 0.000001\n[training]\nglobal_batch = {}\nprecision = "
      "\"bf16\"\n"
      "[cluster]\nnodes = 1\n[cluster.node]\ndevice = \"a100-80\"\ndevices = {}\n{}nic_gbps = 8\n"
      "[cluster.fabric]\nkind = \"switch\"\n[simulation]\nprotocol = \"ideal\"\nseed = {}\n"
      "[simulation.jitter]\n{}\n",
      ranks * microbatches, ranks, ranks > 1 ? "interconnect = \"nvswitch\"\nnvlink_gb_per_s = 100\n" : "",
      seed, jitter);
  const Scenario scenario = read_scenario_text(text, "test.toml", {});
  const int steps = scenario.engine.jitter.steps;
  const Plan plan = write_schedule(scenario);
  Trace trace = simulate_in_child(one_job(*plan.schedule, plan.endpoints, plan.schedule->repeats(steps)),
                                  *scenario.cluster, scenario.engine);
  return evaluate_jittered(trace, scenario, plan, steps);
}

// Expected maxima of n standard normal numbers: H. L. Harter, "Expected Values of Normal Order Statistics",
// Biometrika 48 (1961), table 1.
constexpr double kOf2 = 0.56419, kOf4 = 1.02938, kOf8 = 1.42360;

}  // namespace

TEST_CASE("jitter: factors have the mean 1 and the deviation asked for") {
  for (const Jitter::Kind kind : {Jitter::Kind::normal, Jitter::Kind::log_normal, Jitter::Kind::exponential})
    for (const double deviation : {0.05, 0.25}) {
      CAPTURE(static_cast<int>(kind), deviation);
      const Jitter jitter{kind, deviation, Jitter::Per::op, 64, 3};
      constexpr int kRanks = 100, kSteps = 50, kOps = 40;
      double sum = 0, squares = 0;
      for (int rank = 0; rank < kRanks; ++rank)
        for (int step = 0; step < kSteps; ++step)
          for (int op = 0; op < kOps; ++op) {
            const double factor = jitter_factor(jitter, rank, step, op);
            sum += factor;
            squares += (factor - 1) * (factor - 1);
          }
      constexpr double kCount = kRanks * kSteps * kOps;
      CHECK(sum / kCount == Approx(1).margin(5 * deviation / std::sqrt(kCount)));
      CHECK(std::sqrt(squares / kCount) == Approx(deviation).epsilon(0.02));
    }
  CHECK(jitter_factor({}, 1, 2, 3) == 1);
}

TEST_CASE("jitter: a step takes what the slowest of n ranks takes") {
  struct Case {
    const char* kind;
    double deviation;
    int ranks;
    double longest;  // expected maximum of n factors
  };
  double harmonic = 0;
  for (int i = 1; i <= 8; ++i) harmonic += 1.0 / i;
  for (const Case& c : std::vector<Case>{{"normal", 0.1, 1, 1},
                                         {"normal", 0.1, 2, 1 + 0.1 * kOf2},
                                         {"normal", 0.1, 4, 1 + 0.1 * kOf4},
                                         {"normal", 0.1, 8, 1 + 0.1 * kOf8},
                                         {"exponential", 1, 8, harmonic},
                                         {"exponential", 0.2, 8, 0.8 + 0.2 * harmonic}}) {
    CAPTURE(c.kind, c.deviation, c.ranks);
    const Metrics m = jittered(
        c.ranks, 1,
        fmt::format("kind = \"{}\"\ndeviation = {}\nper = \"step\"\nsteps = 1500\n", c.kind, c.deviation));
    CHECK(m.step_time_s == Approx(kPasses * c.longest).margin(0.12 * c.deviation * kPasses));
    CHECK(m.breakdown.total_s() == Approx(m.step_time_s).epsilon(1e-9));
    REQUIRE(m.distribution);
    CHECK(m.distribution->steps == 1500);
    CHECK(m.distribution->least_s <= m.distribution->low_s);
    CHECK(m.distribution->low_s < m.distribution->median_s);
    CHECK(m.distribution->median_s < m.distribution->high_s);
    CHECK(m.distribution->high_s <= m.distribution->most_s);
  }
}

TEST_CASE("jitter: independent ops average out, those of a slow device do not") {
  // The sum of 8 forward (10 ms) and 8 backward passes (20 ms), each with a factor of its own.
  const double deviation = 0.2 * std::sqrt(8 * (0.010 * 0.010 + 0.020 * 0.020));
  const Metrics ops = jittered(4, 8, "deviation = 0.2\nsteps = 1000\n");
  CHECK(ops.step_time_s == Approx(8 * kPasses + kOf4 * deviation).margin(0.12 * deviation));
  const Metrics devices = jittered(4, 8, "deviation = 0.2\nper = \"device\"\nsteps = 20\n");
  double slowest = 0;
  for (int rank = 0; rank < 4; ++rank)
    slowest =
        std::max(slowest, jitter_factor({Jitter::Kind::normal, 0.2, Jitter::Per::device, 20, 1}, rank, 0, 0));
  CHECK(devices.step_time_s == Approx(8 * kPasses * slowest).epsilon(1e-5));
  CHECK(devices.distribution->most_s == Approx(devices.distribution->least_s).epsilon(1e-9));
}

TEST_CASE("jitter: the seed decides") {
  const auto step_s = [](int seed) {
    return jittered(2, 1, "deviation = 0.2\nsteps = 10\n", seed).step_time_s;
  };
  CHECK(step_s(1) == step_s(1));
  CHECK(step_s(1) != step_s(2));
}
