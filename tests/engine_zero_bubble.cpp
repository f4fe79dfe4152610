// Tests step times of pipelines with split backward passes and of breadth-first ones against closed forms and
// the bubble rates published by Qi et al. ("Zero Bubble Pipeline Parallelism", arXiv 2401.10241).
#include <fmt/format.h>

#include <algorithm>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/layout/stage_spread.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Milliseconds per stage and micro-batch: the forward pass and the two halves of the backward pass.
struct Times {
  double forward, input, weight;
  double sum() const { return forward + input + weight; }
};
constexpr Times kTimes[] = {{10, 10, 10}, {10, 12, 8}, {20, 20, 10}, {10, 15, 5}, {12, 14, 9}};

// Returns a scenario with equal stages, one device per node, and a switch of 10 GB/s.
Scenario profiled(const std::string& schedule, int stages, int chunks, int microbatches, const Times& times,
                  double transfer_ms, const std::vector<std::string>& more = {}, int data = 1) {
  const auto of_chunk = [&](double ms) { return std::to_string(ms / chunks); };
  std::vector<std::string> sets = {
      "model.profiled.stages=" + std::to_string(stages * chunks),
      "model.profiled.forward_ms=" + of_chunk(times.forward),
      "model.profiled.backward_input_ms=" + of_chunk(times.input),
      "model.profiled.backward_weight_ms=" + of_chunk(times.weight),
      "model.profiled.p2p_bytes=" + std::to_string(transfer_ms * 1e7),
      "training.global_batch=" + std::to_string(microbatches * data),
      "cluster.nodes=" + std::to_string(stages * data),
      "cluster.node.device=a100-80",
      "cluster.node.devices=1",
      "cluster.node.nic_gbps=80",
      "cluster.fabric.kind=switch",
      "cluster.fabric.latency_us=0",
      "strategy.schedule=" + schedule,
      "simulation.protocol=ideal",
  };
  if (chunks > 1) sets.push_back("strategy.virtual_stages=" + std::to_string(chunks));
  sets.insert(sets.end(), more.begin(), more.end());
  return read_scenario_text("", "test.toml", sets);
}

Metrics run(const Scenario& scenario) {
  const Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  const Trace trace =
      simulate_in_child(one_job(*plan.schedule, plan.endpoints, plan.schedule->repeats(scenario.steps)),
                        *scenario.cluster, scenario.engine);
  return evaluate(trace, scenario, plan);
}

double bubble_ms(const Metrics& metrics, int microbatches, const Times& times) {
  return 1e3 * metrics.step_time_s - microbatches * times.sum();
}

}  // namespace

TEST_CASE("split backward passes leave the bubbles of table 1", "[release]") {
  struct Case {
    const char* schedule;
    double (*bubble)(const Times&);  // ms for each stage but one
  };
  const Case cases[] = {
      {"1f1b", [](const Times& t) { return t.sum(); }},
      {"zb-h1", [](const Times& t) { return t.forward + t.input - t.weight; }},
      {"zb-h2", [](const Times& t) { return t.forward + t.input - 2 * t.weight; }},
  };
  for (const Case& c : cases)
    for (const Times& times : kTimes)
      for (const int p : {2, 4, 8})
        for (const int m : {2 * p, 3 * p, 5 * p}) {
          CAPTURE(c.schedule, times.forward, times.input, times.weight, p, m);
          const Metrics found = run(profiled(c.schedule, p, 1, m, times, 0));
          const double expected = (p - 1) * c.bubble(times);
          CHECK(bubble_ms(found, m, times) == Approx(expected).margin(1e-6));
          // The breakdown agrees: the rest is compute.
          CHECK(1e3 * found.breakdown.compute_s == Approx(m * times.sum()).epsilon(1e-6));
          CHECK(1e3 * found.breakdown.pipeline_bubble_s == Approx(expected).margin(1e-6));
        }
}

TEST_CASE("ZB-V has no bubble if all passes take equally long, else a smaller one than ZB-H1") {
  for (const Times& times : kTimes)
    for (const int p : {2, 4, 8})
      for (const int m : {2 * p, 3 * p, 5 * p}) {
        CAPTURE(times.forward, times.input, times.weight, p, m);
        const double found = bubble_ms(run(profiled("zb-v", p, 2, m, times, 0)), m, times);
        if (times.forward == times.weight && times.input == times.weight)
          CHECK(found == Approx(0).margin(1e-6));
        else
          CHECK((found > 0 && found < (p - 1) * (times.forward + times.input - times.weight)));
      }
}

TEST_CASE("DualPipeV's bubble is below the published one, (p - 1)(F + 2B - 3W) of whole backward passes B") {
  // From the table in the README of github.com/deepseek-ai/DualPipe, for forward and backward passes that do
  // not overlap; times are those of a model chunk, half a stage. The table treats a forward and a backward
  // pass as one pass whose results leave together; here the results of the forward pass leave first.
  for (const Times& times : kTimes)
    for (const int p : {2, 4, 8})
      for (const int m : {2 * p, 3 * p, 5 * p}) {
        CAPTURE(times.forward, times.input, times.weight, p, m);
        const double found = bubble_ms(run(profiled("dualpipe-v", p, 2, m, times, 0)), m, times);
        const double whole = times.input + times.weight;
        CHECK(found > 0);
        CHECK(found < (p - 1) * (times.forward + 2 * whole - 3 * times.weight) / 2);
        if (times.forward == times.weight && times.input == times.weight)
          CHECK(found == Approx((p - 1) * times.forward / 2).margin(1e-6));
      }
}

TEST_CASE("DualPipe is DualPipeV of half as many stages with twice the data-parallel ranks") {
  const auto of = [](const char* schedule, int pipeline, int data) {
    return read_scenario_text(
        fmt::format("[model]\npreset = \"gpt2\"\n[training]\nglobal_batch = 64\nmicro_batch = 1\n"
                    "[cluster]\npreset = \"dgx-a100\"\nnodes = 2\n[strategy]\nschedule = \"{}\"\n"
                    "pipeline = {}\ndata = {}\nplacement = [\"data\", \"pipeline\"]\n",
                    schedule, pipeline, data),
        "dual.toml");
  };
  const Scenario whole = of("dualpipe", 8, 2), half = of("dualpipe-v", 4, 4);
  CHECK(whole.strategy.pipeline == 4);
  CHECK(whole.strategy.data == 4);
  CHECK(whole.microbatches == half.microbatches);
  const Plan one = write_schedule(whole), other = write_schedule(half);
  REQUIRE(one.schedule->programs.size() == other.schedule->programs.size());
  for (std::size_t p = 0; p < one.schedule->programs.size(); ++p) {
    const std::vector<Op>&a = one.schedule->programs[p].ops, &b = other.schedule->programs[p].ops;
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].name == b[i].name);
  }
  // Thus DualPipe with 2p stages has the published bubble of DualPipeV with p stages.
}

TEST_CASE("breadth-first has the bubble of interleaved 1F1B, (p - 1)(tF + tB) / v") {
  const Times times{10, 12, 8};
  for (const int p : {2, 4, 8})
    for (const int v : {2, 3})
      for (const int m : {p, 2 * p, 2 * p + 1}) {
        CAPTURE(p, v, m);
        CHECK(bubble_ms(run(profiled("breadth-first", p, v, m, times, 0)), m, times) ==
              Approx((p - 1) * times.sum() / v).margin(1e-6));
      }
}

TEST_CASE("bubble rates are those that the paper calculates from its profiled times", "[release]") {
  // Tables 9 (T_F, T_B, T_W, T_comm in ms) and 5 (bubble rates: 1 - m (T_F + T_B + T_W) / step time) of arXiv
  // 2401.10241.
  struct Row {
    const char* model;
    int stages, microbatches;
    Times times;
    double transfer_ms, one_f_one_b, h1, h2;
  };
  const Row rows[] = {
      {"1.5B", 8, 24, {18.522, 18.086, 9.337}, 0.601, 0.2431, 0.1585, 0.1083},
      {"1.5B", 8, 32, {18.513, 18.086, 9.331}, 0.626, 0.1985, 0.1242, 0.0837},
      {"1.5B", 8, 64, {18.546, 18.097, 9.321}, 0.762, 0.124, 0.0674, 0.0444},
      {"6.2B", 8, 24, {29.718, 29.444, 19.927}, 0.527, 0.2347, 0.1323, 0.0698},
      {"6.2B", 8, 32, {29.802, 29.428, 19.53}, 0.577, 0.1898, 0.1045, 0.0559},
      {"6.2B", 8, 64, {29.935, 29.621, 19.388}, 0.535, 0.1091, 0.0554, 0.0294},
      {"14.6B", 16, 48, {11.347, 11.248, 8.132}, 0.377, 0.2552, 0.1397, 0.0672},
      {"14.6B", 16, 64, {11.307, 11.254, 8.101}, 0.379, 0.2082, 0.1088, 0.0516},
      {"14.6B", 16, 128, {11.325, 11.308, 8.109}, 0.378, 0.1251, 0.0576, 0.0266},
      {"28.3B", 32, 96, {10.419, 10.207, 7.715}, 0.408, 0.2646, 0.1421, 0.0641},
      {"28.3B", 32, 128, {10.408, 10.204, 7.703}, 0.408, 0.2168, 0.1106, 0.049},
      {"28.3B", 32, 256, {10.402, 10.248, 7.698}, 0.46, 0.1352, 0.0594, 0.0257},
  };
  for (const Row& row : rows)
    for (const auto& [schedule, published] :
         {std::pair("1f1b", row.one_f_one_b), std::pair("zb-h1", row.h1), std::pair("zb-h2", row.h2)}) {
      const Metrics found =
          run(profiled(schedule, row.stages, 1, row.microbatches, row.times, row.transfer_ms));
      const double rate = 1 - row.microbatches * row.times.sum() / (1e3 * found.step_time_s);
      CAPTURE(row.model, row.microbatches, schedule, rate, published);
      CHECK(rate == Approx(published).margin(2e-4));  // rates are published with four digits
    }
}

TEST_CASE("a staggered pipeline's steps follow each other, and fold") {
  for (const char* schedule : {"zb-h1", "zb-h2", "zb-v", "dualpipe-v"})
    for (const char* slow : {"[]", "[{device=3,factor=0.5}]"}) {
      CAPTURE(schedule, slow);
      const int chunks = std::string(schedule).ends_with('v') ? 2 : 1;
      const Scenario scenario = profiled(
          schedule, 2, chunks, 6, {10, 12, 8}, 0.5,
          {std::string("cluster.slow=") + slow, "strategy.bucket_mb=1", "model.profiled.parameters=1e6",
           "cluster.fabric.latency_us=5", "simulation.protocol=nccl"},
          4);
      const Plan plan = write_schedule(scenario);
      const Run run = one_job(*plan.schedule, plan.endpoints, 3);
      check_folding(run, *scenario.cluster, scenario.engine, std::string(slow) == "[]");
    }
}

TEST_CASE("the slowest stage sets the pace of every schedule") {
  const Times times{10, 12, 8};
  const double deviation = 0.05;
  const struct {
    const char* schedule;
    int chunks;
  } cases[] = {{"gpipe", 1}, {"1f1b", 1},  {"interleaved", 2}, {"breadth-first", 2},
               {"zb-h1", 1}, {"zb-h2", 1}, {"zb-v", 2}};
  for (const auto& c : cases)
    for (const int p : {2, 4, 8}) {
      if (testing::kSanitized && p > 2) continue;
      CAPTURE(c.schedule, p);
      const auto step_ms = [&](int microbatches, const char* given) {
        const std::vector<std::string> more = {"model.profiled.stage_deviation=" + std::string(given)};
        return 1e3 * run(profiled(c.schedule, p, c.chunks, microbatches, times, 0, more)).step_time_s;
      };
      // Time per micro-batch, from 2p more of them once the pipeline is full.
      const double pace = (step_ms(8 * p, "0.05") - step_ms(6 * p, "0.05")) / (2 * p);
      CHECK(pace == Approx(times.sum() * (1 + deviation * normal_order_statistics(p).back())).epsilon(1e-6));
      // A deviation of 0 changes nothing.
      const double equal = 1e3 * run(profiled(c.schedule, p, c.chunks, 6 * p, times, 0)).step_time_s;
      CHECK(step_ms(6 * p, "0") == equal);
      CHECK(step_ms(6 * p, "0.05") > equal);
    }
}
