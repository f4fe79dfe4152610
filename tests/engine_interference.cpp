// Tests simulated computation that overlaps with collectives: against values computed by hand, and folded
// against unfolded.
#include <algorithm>
#include <string>
#include <vector>

#include "simulator/costs/compute.hpp"
#include "simulator/costs/interference.hpp"
#include "simulator/engine/concurrency.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/strategies_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Returns reads and writes of an A100's memory that take `seconds` alone.
Work traffic(double seconds) {
  const Device device = device_preset("a100-80");
  Work work;
  work.optimizer_bytes = seconds * device.memory_bandwidth.value * device.memory_efficiency.value;
  return work;
}

constexpr int kRanks = 4;

// Returns a schedule that computes for `before_s`, then overlaps an all-reduce of `bytes` on a separate
// stream with `during_s` of computation, and computes for `after_s` when both are done.
Schedule beside(double before_s, double bytes, double during_s, double after_s) {
  Schedule s;
  s.roles = {role("worker", {{"data", kRanks}})};
  s.works = {traffic(before_s), traffic(during_s), traffic(after_s)};
  Program p;
  p.name = "worker";
  p.streams = {"compute", "gradients"};
  p.ops = {compute("before", 0, 0), all_reduce("all-reduce", 1, {{{0}}}, bytes, {{0}}),
           compute("during", 0, 1), compute("after", 0, 2, {{1}})};
  s.programs = {p};
  return s;
}

EngineOptions slowing(Fidelity fidelity, bool fold = true) {
  EngineOptions options;
  options.fidelity = fidelity;
  options.protocol = Protocol::nccl;
  options.interference.on = true;
  options.fold = fold;
  return options;
}

double end_of(const Trace& trace, int op) {
  for (std::size_t row = 0; row < trace.spans.size(); ++row)
    if (trace.spans.op[row] == op) return trace.spans.end_s[row];
  return -1;
}

// Returns the factor by which memory-bound computation takes longer during the all-reduce.
double slowdown(double bytes, double all_reduce_s) {
  TransferShape shape;
  shape.compute_capability = 80;
  shape.ranks = shape.nodes = kRanks;
  const Device device = device_preset("a100-80");
  Collective collective;
  const Device left = device_beside(device, load_of(collective, bytes, shape, all_reduce_s));
  return device.memory_bandwidth.value / left.memory_bandwidth.value;
}

}  // namespace

TEST_CASE("computing goes on slowly until a collective beside it has ended") {
  const ClusterParts parts = star(kRanks, 100e9);
  const double bytes = 20e9, before_s = 0.25;
  for (const Fidelity fidelity : {Fidelity::analytic, Fidelity::automatic, Fidelity::flow, Fidelity::chunk}) {
    const auto run = [&](double during_s, const EngineOptions& options) {
      return simulate_in_child(one_job(beside(before_s, bytes, during_s, 0.125), first_endpoints(kRanks)),
                               *make_cluster(parts), options);
    };
    CAPTURE(kFidelityNames[static_cast<std::size_t>(fidelity)]);
    EngineOptions off = slowing(fidelity);
    off.interference.on = false;
    const double all_reduce_s = end_of(run(0.01, off), 1) - before_s;
    const double slower = slowdown(bytes, all_reduce_s);
    REQUIRE(slower > 1.2);
    for (const double share : {0.5, 0.9, 2.0}) {  // of the collective's time, without interference
      const double during_s = share * all_reduce_s;
      CAPTURE(share, slower);
      const double expected_s = during_s * slower <= all_reduce_s
                                    ? during_s * slower
                                    : all_reduce_s + (during_s - all_reduce_s / slower);
      const Trace trace = run(during_s, slowing(fidelity));
      CHECK(end_of(trace, 2) == Approx(before_s + expected_s).epsilon(1e-8));
      CHECK(end_of(trace, 1) == Approx(before_s + all_reduce_s).epsilon(1e-8));  // is not slowed down
      CHECK(end_of(trace, 3) == Approx(before_s + std::max(expected_s, all_reduce_s) + 0.125).epsilon(1e-8));
      CHECK(break_down(trace, 0).slowed_s == Approx(expected_s - during_s).epsilon(1e-6));
      CHECK(end_of(run(during_s, off), 2) == Approx(before_s + during_s).epsilon(1e-8));
    }
  }
}

TEST_CASE("a device that becomes slower computes on slowly beside a collective") {
  // Half the speed from 0.25 + 0.1 s on; the collective lasts longer than the computation.
  const double bytes = 40e9, during_s = 0.2;
  Run run = one_job(beside(0.25, bytes, during_s, 0.125), first_endpoints(kRanks));
  for (int endpoint = 0; endpoint < kRanks; ++endpoint)
    run.events.push_back({Event::Kind::device_speed, 0.35, endpoint, -1, 0.5});
  const std::shared_ptr<const Cluster> cluster = make_cluster(star(kRanks, 100e9));
  EngineOptions off = slowing(Fidelity::automatic);
  off.interference.on = false;
  const double slower = slowdown(bytes, end_of(simulate_in_child(run, *cluster, off), 1) - 0.25);
  const double left_s = during_s - 0.1 / slower;
  CHECK(end_of(simulate_in_child(run, *cluster, slowing(Fidelity::automatic)), 2) ==
        Approx(0.35 + left_s * slower / 0.5).epsilon(1e-8));
}

TEST_CASE("computing is beside those collectives that dependencies do not keep apart from it") {
  struct Case {
    const char* what;
    std::vector<Op> ops;
    std::vector<bool> expected;
  };
  const Group all = {{{0}}};
  const Case cases[] = {
      {"before, beside and behind",
       {compute("a", 0, 0), all_reduce("r", 1, all, 1, {{0}}), compute("b", 0, 0), compute("c", 0, 0, {{1}})},
       {false, true, true, false}},
      {"awaited at once",
       {compute("a", 0, 0), all_reduce("r", 1, all, 1, {{0}}), compute("c", 0, 0, {{1}})},
       {false, false, false}},
      {"on the stream of computing",
       {compute("a", 0, 0), all_reduce("r", 0, all, 1), compute("b", 0, 0)},
       {false, false, false}},
      {"by way of a third stream",
       {compute("a", 0, 0), all_reduce("r", 1, all, 1, {{0}}), host("h", 2, {{1}}),
        compute("b", 0, 0, {{2}})},
       {false, false, false, false}},
      {"two collectives, one of them awaited",
       {compute("a", 0, 0), all_reduce("r", 1, all, 1, {{0}}), all_reduce("q", 1, all, 1),
        compute("b", 0, 0, {{1}}), compute("c", 0, 0, {{2}})},
       {false, false, true, true, false}},
      {"into the next step",
       {compute("a", 0, 0), compute("b", 0, 0), all_reduce("r", 1, all, 1, {{1}})},
       {true, true, true}},
      {"until an op of the next step awaits it",
       {compute("a", 0, 0), compute("b", 0, 0, {{2, 1}}), all_reduce("r", 1, all, 1, {{1}})},
       {true, false, true}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Schedule s;
    s.roles = {role("worker", {{"data", 2}})};
    s.works = {work(1)};
    Program p;
    p.name = "worker";
    p.streams = {"compute", "gradients", "host"};
    p.ops = c.ops;
    s.programs = {p};
    const ProgramIndex index(s, s.programs.front());
    CHECK(computes_beside_collectives(s.programs.front(), index) == c.expected);
  }
}

TEST_CASE("computing beside collectives folds exactly") {
  struct Case {
    test::Degrees degrees;
    int zero_stage;
    TensorOverlap overlap;
    const char* slow;
  };
  // data, context, tensor, pipeline
  const Case cases[] = {
      {{8, 1, 1, 1}, 0, TensorOverlap::none, ""},
      {{8, 1, 1, 1}, 3, TensorOverlap::none, ""},
      {{2, 1, 4, 1}, 0, TensorOverlap::weight_gradients, ""},
      {{2, 1, 2, 2}, 1, TensorOverlap::weight_gradients, ""},
      {{8, 1, 1, 1}, 3, TensorOverlap::none, "[[cluster.slow]]\ndevice = 3\nfactor = 0.7\n"}};
  for (const Case& c : cases)
    for (const char* fidelity : {"auto", "flow"}) {
      const bool tensor = c.degrees.tensor > 1;
      const std::string text =
          "[model.transformer]\nlayers = 4\nhidden = 2048\nheads = 16\nvocabulary = 32000\nsequence_length = "
          "1024\n"
          "[training]\nglobal_batch = 32\nmicro_batch = 1\n[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n" +
          std::string(c.slow) + "[strategy]\ndata = " + std::to_string(c.degrees.data) +
          "\ntensor = " + std::to_string(c.degrees.tensor) +
          "\npipeline = " + std::to_string(c.degrees.pipeline) +
          (tensor ? "\nsequence_parallel = true\ntensor_overlap = \"weight-gradients\"" : "") +
          "\nzero_stage = " + std::to_string(c.zero_stage) + "\n[simulation]\nfidelity = \"" + fidelity +
          "\"\n";
      CAPTURE(text);
      const Scenario scenario = read_scenario_text(text, "beside.toml");
      REQUIRE(scenario.engine.interference.on);
      const Plan plan = write_schedule(scenario);
      const Run run = one_job(*plan.schedule, plan.endpoints, 2);
      check_folding(run, *scenario.cluster, scenario.engine, *c.slow == 0);
      EngineOptions off = scenario.engine;
      off.interference.on = false;
      const Trace slowed = simulate_in_child(run, *scenario.cluster, scenario.engine);
      CHECK(break_down(slowed, 0).slowed_s > 0);
      CHECK(slowed.end_s > simulate_in_child(run, *scenario.cluster, off).end_s);
    }
}
