// Tests simulated combinations of all axes: folded against unfolded to 1e-9, and ring attention against its
// closed form.
#include <algorithm>
#include <map>
#include <string>

#include "simulator/costs/compute.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/random_axes.hpp"
#include "tests/strategies_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

TEST_CASE("a step with attention in a ring takes what its steps and exchanges take") {
  // One layer, one micro-batch, one device per node.
  for (const int n : {2, 4})
    for (const double gbps : {1.0, 400.0}) {
      CAPTURE(n, gbps);
      Scenario s = test::axes_scenario(test::axes_gpt(1, 2048), {1, n, 1, 1});
      s.microbatches = 1;
      s.training.global_batch = 2;
      s.strategy.overlap = false;
      s.strategy.bucket_bytes = s.strategy.first_bucket_bytes = 1e9;
      s.engine.protocol = Protocol::ideal;
      s.cluster = make_cluster(star(n, gbps / 8 * 1e9));
      const Plan plan = write_schedule(s);
      const Device& device = s.cluster->node().device;
      const double hop_s = 2 * kHopLatency, rate = gbps / 8 * 1e9;

      double expected = 0;
      std::map<Pass, std::vector<double>> steps, exchanges;
      for (const Op& op : plan.schedule->programs.front().ops) {
        if (op.kind == OpKind::exchange)
          exchanges[op.pass].push_back(op.messages.front().bytes.base / rate + hop_s);
        else if (op.kind == OpKind::collective)
          expected += 2 * (n - 1) * (op.collective.bytes.base / n / rate + hop_s);
        else if (op.name.find("step") != std::string::npos)
          steps[op.pass].push_back(work_time_s(plan.schedule->works[op.work], device));
        else
          expected += work_time_s(plan.schedule->works[op.work], device);
      }
      // A step of the ring and the exchange that overlaps with it both wait for the previous ones.
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        REQUIRE(static_cast<int>(steps[pass].size()) == n);
        for (std::size_t i = 0; i < steps[pass].size(); ++i)
          expected += std::max(steps[pass][i], i < exchanges[pass].size() ? exchanges[pass][i] : 0);
      }
      expected += exchanges[Pass::backward].back();  // returns the last gradients to their owners
      const Trace trace = simulate_in_child(one_job(*plan.schedule, plan.endpoints), *s.cluster, s.engine);
      CHECK(*std::max_element(trace.spans.end_s.begin(), trace.spans.end_s.end()) ==
            Approx(expected).epsilon(1e-9));
    }
}

TEST_CASE("random combinations of axes, folded and unfolded, by seed") {
  // Each fabric at full speed, with a slow device, and with a slow link.
  struct Case {
    const RandomFabric& fabric;
    const char* slow;
  };
  const Case cases[] = {
      {kRandomFabrics[0], ""}, {kRandomFabrics[0], "slow = [{device = 3, factor = 0.6}]\n"},
      {kRandomFabrics[1], ""}, {kRandomFabrics[1], "slow = [{link = \"node1.nic0\", factor = 0.3}]\n"},
      {kRandomFabrics[2], ""}, {kRandomFabrics[2], "slow = [{device = 5, factor = 0.8}]\n"},
      {kRandomFabrics[3], ""},
  };
  const int combinations = kSanitized ? 1 : 6;  // per case
  std::uint64_t seed = 1;
  for (const Case& c : cases)
    for (int i = 0; i < combinations; ++i) {
      RandomAxes random(seed++);
      const int devices = i == 0 ? 8 : i == 5 ? 64 : 8 << random.below(3);
      const Scenario scenario = random.scenario(c.fabric, devices, c.slow);
      CAPTURE(c.fabric.name, c.slow, devices, scenario.text);
      const Plan plan = write_schedule(scenario);
      check_folding(one_job(*plan.schedule, plan.endpoints, 2), *scenario.cluster, scenario.engine, false);
    }
}

TEST_CASE("combinations of axes on 512 devices, folded and unfolded") {
  if (kSanitized) return;
  for (const std::uint64_t seed : {1, 2}) {
    RandomAxes random(seed);
    const Scenario scenario = random.scenario(kRandomFabrics[2], 512);
    CAPTURE(scenario.text);
    const Plan plan = write_schedule(scenario);
    check_folding(one_job(*plan.schedule, plan.endpoints), *scenario.cluster, scenario.engine, true);
  }
}

TEST_CASE("random combinations of axes: the parts of a step add up, and work and bytes are conserved") {
  const int scenarios = kSanitized ? 5 : 60;
  for (int seed = 1; seed <= scenarios; ++seed) {
    RandomAxes random(static_cast<std::uint64_t>(1000 + seed));
    const RandomFabric& fabric = kRandomFabrics[random.below(4)];
    const Scenario scenario = random.scenario(fabric, 4 << random.below(4));
    CAPTURE(seed, scenario.text);
    const Plan plan = write_schedule(scenario);
    const Trace trace =
        simulate_in_child(one_job(*plan.schedule, plan.endpoints, 2), *scenario.cluster, scenario.engine);
    const Metrics metrics = evaluate(trace, scenario, plan);
    CHECK(metrics.step_time_s > 0);
    CHECK(metrics.breakdown.total_s() == Approx(metrics.step_time_s).epsilon(1e-6));
    CHECK(metrics.mfu > 0);
    CHECK(metrics.mfu <= metrics.hfu * (1 + 1e-9));
    CHECK(metrics.memory.total > 0);
    const double flops = metrics.model_tflops_per_device * 1e12 * metrics.devices * metrics.step_time_s;
    const double expected = flops_per_sample(scenario.model, 0) * scenario.training.global_batch;
    // Except for windows and padding, all ranks together compute the model once.
    CHECK(flops == Approx(expected).epsilon(1e-3));
  }
}

namespace {

void check_random_axes(int seeds) {
  int written = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    RandomAxes random(static_cast<std::uint64_t>(5000 + seed));
    const std::string text = random.text(kRandomFabrics[random.below(4)], 4 << random.below(5));
    CAPTURE(text);
    Scenario scenario;
    try {
      scenario = read_scenario_text(text, "random.toml");
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find("allowed: ") != std::string::npos);
      continue;
    }
    ++written;
    CHECK_NOTHROW(check(*write_schedule(scenario).schedule));
  }
  CHECK(written >= seeds / 4);
}

}  // namespace

TEST_CASE("random combinations of axes are refused in words or written soundly") {
  check_random_axes(kSanitized ? 40 : 800);
}

// ctest does not run this one.
TEST_CASE("thousands of random combinations of axes are refused in words or written soundly",
          "[.][exhaustive]") {
  check_random_axes(5000);
}
