// Tests interleaved 1F1B on the engine against closed forms, to 0.1 %, for equal model chunks and free
// transfers.
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kStageForward = 0.012,
                 kStageBackward = 0.024;  // per stage and micro-batch; a model chunk takes 1/v

// Returns a scenario with stages of equal length, one device per node, and a switch of 1 GB/s.
Scenario profiled(int stages, int chunks, int microbatches, int data, const std::vector<std::string>& more) {
  const auto ms = [&](double seconds) { return std::to_string(1e3 * seconds / chunks); };
  std::vector<std::string> sets = {
      "model.profiled.stages=" + std::to_string(stages * chunks),
      "model.profiled.forward_ms=" + ms(kStageForward),
      "model.profiled.backward_input_ms=" + ms(kStageBackward / 2),
      "model.profiled.backward_weight_ms=" + ms(kStageBackward / 2),
      "model.profiled.p2p_bytes=0",
      "training.global_batch=" + std::to_string(microbatches * data),
      "cluster.nodes=" + std::to_string(stages * data),
      "cluster.node.device=a100-80",
      "cluster.node.devices=1",
      "cluster.node.nic_gbps=8",
      "cluster.fabric.kind=switch",
      "cluster.fabric.latency_us=0",
      "strategy.schedule=interleaved",
      "strategy.virtual_stages=" + std::to_string(chunks),
      "simulation.protocol=ideal",
  };
  sets.insert(sets.end(), more.begin(), more.end());
  return read_scenario_text("", "test.toml", sets);
}

struct InterleavedRun {
  double end_s;
  Breakdown breakdown;
};

InterleavedRun run(const Scenario& scenario) {
  Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  const Run run = one_job(*plan.schedule, plan.endpoints);
  const Trace trace = simulate_in_child(run, *scenario.cluster, scenario.engine);
  return {trace.end_s, break_down(trace, 0)};
}

}  // namespace

TEST_CASE("interleaved 1F1B takes (m v + p - 1)(tF + tB) / v, its bubble is (p - 1) / (m v) of the rest") {
  for (const int p : {2, 3, 4, 8})
    for (const int v : {2, 3, 4})
      for (const int groups : {1, 2, 4})
        for (const char* blocking : {"false", "true"}) {
          const double m = groups * p;
          CAPTURE(p, v, m, blocking);
          const InterleavedRun found =
              run(profiled(p, v, groups * p, 1, {std::string("strategy.blocking_p2p=") + blocking}));
          CHECK(found.end_s == Approx((m * v + p - 1) * (kStageForward + kStageBackward) / v).epsilon(1e-3));
          CHECK(found.breakdown.pipeline_bubble_s / found.breakdown.compute_s ==
                Approx((p - 1) / (m * v)).epsilon(1e-3));
        }
}

TEST_CASE("interleaved transfers that nothing hides") {
  // Two stages, two micro-batches. The first micro-batch crosses 2 v - 1 boundaries forward and as many
  // backward; the other transfers are hidden behind its passes. Blocking transfers instead follow each of the
  // 2 v forward and 2 v backward rounds.
  const double bytes = 1e6, transfer_s = bytes / 1e9;
  for (const int v : {2, 3, 5})
    for (const bool blocking : {false, true}) {
      CAPTURE(v, blocking);
      const std::string p2p = blocking ? "strategy.blocking_p2p=true" : "strategy.blocking_p2p=false";
      const double free_s = (2 * v + 1) * (kStageForward + kStageBackward) / v;
      const InterleavedRun paid =
          run(profiled(2, v, 2, 1, {p2p, "model.profiled.p2p_bytes=" + std::to_string(bytes)}));
      CHECK(paid.end_s == Approx(free_s + (blocking ? 4 * v : 2 * (2 * v - 1)) * transfer_s).epsilon(1e-6));
    }
}

TEST_CASE("interleaved stages fold") {
  for (const char* blocking : {"false", "true"})
    for (const char* slow : {"[]", "[{device=3,factor=0.5}]"}) {
      CAPTURE(blocking, slow);
      const Scenario scenario =
          profiled(2, 3, 4, 4,
                   {std::string("strategy.blocking_p2p=") + blocking, std::string("cluster.slow=") + slow,
                    "model.profiled.p2p_bytes=1e6", "model.profiled.parameters=1e6", "strategy.bucket_mb=1",
                    "cluster.fabric.latency_us=5", "simulation.protocol=nccl"});
      const Plan plan = write_schedule(scenario);
      const Run run = one_job(*plan.schedule, plan.endpoints, 2);
      check_folding(run, *scenario.cluster, scenario.engine, std::string(slow) == "[]");
    }
}
