// Tests schedules as the strategies write them, from a scenario's text to the end of its step: against closed
// forms to 0.1 %, and folded against unfolded to 1e-9.
#include <algorithm>
#include <cmath>

#include "simulator/costs/compute.hpp"
#include "simulator/engine/layout.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kForward = 0.010, kBackward = 0.020;  // per stage and micro-batch, in the scenarios below
constexpr double kNic = 1e9, kRoute = 20e-6;           // bytes/s; seconds from node to node

std::string number(double value) {
  return std::to_string(value);
}

// Returns a scenario in which every stage takes 10 ms forward and 12 + 8 ms backward, with one device per
// node and one switch.
std::string profiled(int stages, int microbatches, int data, double parameters = 0, double latency_us = 0) {
  return "[model.profiled]\nstages = " + std::to_string(stages) +
         "\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = 8\np2p_bytes = 1\nparameters = " +
         number(parameters) +
         "\n[training]\nmicro_batch = 1\nglobal_batch = " + std::to_string(microbatches * data) +
         "\n[cluster]\nnodes = " + std::to_string(stages * data) +
         "\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 8\n"
         "[cluster.fabric]\nkind = \"switch\"\nlatency_us = " +
         number(latency_us) + "\n";
}

struct StrategyRun {
  Scenario scenario;
  Plan plan;
  Trace trace;

  // Returns the seconds of one pass of this program on the device of its first rank.
  double work_s(const std::string& program, Pass pass) const {
    double seconds = 0;
    for (const Program& p : plan.schedule->programs)
      if (p.name == program) {
        const int endpoint = plan.endpoints[plan.schedule->first_rank(p.role)];
        const Device device = device_at(*scenario.cluster, endpoint);
        for (const Op& op : p.ops)
          if (op.kind == OpKind::compute && op.pass == pass)
            seconds += work_time_s(plan.schedule->works[op.work], device);
      }
    return seconds;
  }
};

Run run_of(const Scenario& scenario, const Plan& plan, int steps = 1) {
  Job job;
  job.name = scenario.name;
  job.phases = {{plan.schedule, steps}};
  job.endpoints = plan.endpoints;
  Run run;
  run.jobs = {std::move(job)};
  return run;
}

StrategyRun run_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Scenario scenario = read_scenario_text(text, "test.toml", overrides);
  const Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  return {scenario, plan, simulate_in_child(run_of(scenario, plan), *scenario.cluster, scenario.engine)};
}

constexpr const char* kFidelityTexts[] = {"flow", "auto", "chunk", "analytic"};

}  // namespace

TEST_CASE("GPipe and 1F1B with equal stages: (m + p - 1) (tF + tB)") {
  for (const char* schedule : {"gpipe", "1f1b"})
    for (int stages : {1, 2, 4, 8, 16})
      for (int microbatches : {1, 4, 16, 64})
        for (const char* blocking : {"false", "true"}) {
          CAPTURE(schedule, stages, microbatches, blocking);
          const StrategyRun run =
              run_text(profiled(stages, microbatches, 1) + "[strategy]\nschedule = \"" + schedule +
                       "\"\nblocking_p2p = " + blocking + "\n[simulation]\nprotocol = \"ideal\"\n");
          CHECK(run.trace.end_s ==
                Approx((microbatches + stages - 1) * (kForward + kBackward)).epsilon(kTolerance));
        }
}

TEST_CASE("GPipe with unequal stages: every pass m times in the slowest stage, once in the others") {
  const std::string text =
      "[model.profiled]\nstages = 3\nforward_ms = [10, 30, 10]\nbackward_input_ms = [20, 60, 20]\n"
      "backward_weight_ms = 0\np2p_bytes = 1\n[training]\nglobal_batch = 12\n[cluster]\nnodes = 3\n"
      "[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 8\n[cluster.fabric]\nkind = \"switch\"\n"
      "latency_us = 0\n[strategy]\nschedule = \"gpipe\"\n[simulation]\nprotocol = \"ideal\"\n";
  const double theory = (0.010 + 12 * 0.030 + 0.010) + (0.020 + 12 * 0.060 + 0.020);
  CHECK(run_text(text).trace.end_s == Approx(theory).epsilon(kTolerance));
}

TEST_CASE("a transfer between stages is paid where it cannot hide") {
  // Two stages, one micro-batch: nothing is hidden. 1 MB at 1 GB/s plus the route's latency, forward and
  // backward.
  const StrategyRun one = run_text(profiled(2, 1, 1, 0, 10) + "[simulation]\nprotocol = \"ideal\"\n",
                                   {"model.profiled.p2p_bytes=1e6"});
  CHECK(one.trace.end_s ==
        Approx(2 * (kForward + kBackward) + 2 * (1e6 / kNic + kRoute)).epsilon(kTolerance));
  // GPipe with many micro-batches: transfers are shorter than passes, so all but the first and the last are
  // hidden.
  const StrategyRun many = run_text(
      profiled(4, 16, 1, 0, 10) + "[strategy]\nschedule = \"gpipe\"\n[simulation]\nprotocol = \"ideal\"\n",
      {"model.profiled.p2p_bytes=1e6"});
  CHECK(many.trace.end_s ==
        Approx(19 * (kForward + kBackward) + 6 * (1e6 / kNic + kRoute)).epsilon(kTolerance));
}

TEST_CASE("data parallelism without overlap: compute + 2 (n-1) (S / (n B) + latency) + update") {
  for (int n : {1, 2, 3, 4, 8, 16})
    for (const char* precision : {"fp32", "bf16"})
      for (const char* fidelity : kFidelityTexts) {
        CAPTURE(n, precision, fidelity);
        const double parameters = 25e6, bytes = parameters * (precision[0] == 'f' ? 4 : 2);
        const StrategyRun run =
            run_text(profiled(1, 1, n, parameters, 10) + "[strategy]\noverlap = false\n" +
                         "[simulation]\nprotocol = \"ideal\"\nfidelity = \"" + fidelity + "\"\n",
                     {std::string("training.precision=") + precision});
        const double sync = n == 1 ? 0 : 2 * (n - 1) * (bytes / (n * kNic) + kRoute);
        const double update = run.work_s("worker", Pass::optimizer);
        CHECK(update > 0);
        CHECK(run.trace.end_s == Approx(kForward + kBackward + sync + update).epsilon(kTolerance));
        CHECK(run.trace.bytes_total == Approx(n == 1 ? 0 : 2 * (n - 1) * bytes).epsilon(1e-9));
      }
}

TEST_CASE("data parallelism: buckets behind the backward pass") {
  // Eight equal layers of 1,024^2 weights, fp32: buckets of 4.2 MB. Without overlap they follow the backward
  // pass. With overlap the synchronization starts with the first bucket and, if it is slower than
  // computation, the others follow without a gap.
  const std::string text =
      "[model.multi_layer_perceptron]\nwidths = [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024]\n"
      "[training]\nglobal_batch = 64\nmicro_batch = 16\nprecision = \"fp32\"\noptimizer = \"sgd\"\n"
      "[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 8\n"
      "[cluster.fabric]\nkind = \"switch\"\nlatency_us = 10\n[strategy]\nbucket_mb = 4\n"
      "[simulation]\nprotocol = \"ideal\"\n";
  const double bucket_s = 2 * 3 * (1024 * 1025 * 4 / (4 * kNic) + kRoute);
  const StrategyRun after = run_text(text, {"strategy.overlap=false"});
  const double forward = after.work_s("worker", Pass::forward),
               backward = after.work_s("worker", Pass::backward),
               update = after.work_s("worker", Pass::optimizer);
  CHECK(after.trace.end_s == Approx(forward + backward + 8 * bucket_s + update).epsilon(kTolerance));

  const StrategyRun behind = run_text(text);
  double first_layer = 0;  // backward pass of the last layer, whose bucket is sent first
  for (const Op& op : behind.plan.schedule->programs[0].ops)
    if (op.pass == Pass::backward && op.last_layer == 7)
      first_layer = work_time_s(behind.plan.schedule->works[op.work], behind.scenario.cluster->node().device);
  REQUIRE(bucket_s > backward / 8);
  CHECK(behind.trace.end_s == Approx(forward + first_layer + 8 * bucket_s + update).epsilon(kTolerance));

  // On a network a thousand times as fast, only the last bucket is exposed.
  const StrategyRun hidden = run_text(text, {"cluster.node.nic_gbps=8000", "cluster.fabric.latency_us=0"});
  CHECK(hidden.trace.end_s ==
        Approx(forward + backward + 2 * 3 * (1024 * 1025 * 4 / (4 * 1000 * kNic)) + update)
            .epsilon(kTolerance));
}

TEST_CASE("synchronous servers without overlap: compute, all gradients in, update, all weights out") {
  for (int workers : {1, 2, 4, 16})
    for (int servers : {1, 2, 4})
      for (const char* fidelity : {"flow", "auto", "chunk"}) {
        CAPTURE(workers, servers, fidelity);
        const double parameters = 25e6, bytes = 2 * parameters;  // bf16
        const StrategyRun run = run_text(
            profiled(1, 1, workers, parameters, 10) +
            "[strategy]\noverlap = false\ngradients = \"parameter-server\"\n[strategy.parameter_server]\n"
            "servers = " +
            std::to_string(servers) + "\n[simulation]\nprotocol = \"ideal\"\nfidelity = \"" + fidelity +
            "\"\n");
        // A server's link carries n S / k, a worker's S.
        const double way_s = std::max(static_cast<double>(workers) / servers, 1.0) * bytes / kNic + kRoute;
        const double update = run.work_s("server", Pass::optimizer);
        CHECK(update > 0);
        CHECK(run.trace.end_s == Approx(kForward + kBackward + 2 * way_s + update).epsilon(kTolerance));
        CHECK(run.trace.bytes_total == Approx(2 * workers * bytes).epsilon(1e-9));
      }
}

TEST_CASE("gradient accumulation: m micro-batches cost m passes and one sync") {
  const int n = 4;
  const double parameters = 25e6;
  const double ring = 2 * (n - 1) * (2 * parameters / (n * kNic) + kRoute);
  const double incast = n * 2 * parameters / kNic + kRoute;
  for (int m : {1, 2, 8, 32}) {
    CAPTURE(m);
    const std::string text =
        profiled(1, m, n, parameters, 10) + "[simulation]\nprotocol = \"ideal\"\n[strategy]\n";
    const StrategyRun all_reduce = run_text(text + "overlap = false\n");
    CHECK(all_reduce.trace.end_s ==
          Approx(m * (kForward + kBackward) + ring + all_reduce.work_s("worker", Pass::optimizer))
              .epsilon(kTolerance));
    // With one bucket, overlap changes nothing.
    CHECK(run_text(text).trace.end_s == Approx(all_reduce.trace.end_s).epsilon(1e-12));
    const StrategyRun server = run_text(text + "overlap = false\ngradients = \"parameter-server\"\n");
    CHECK(server.trace.end_s ==
          Approx(m * (kForward + kBackward) + 2 * incast + server.work_s("server", Pass::optimizer))
              .epsilon(kTolerance));
  }
}

TEST_CASE("where nothing crosses the step's end, steps follow one another and are alike") {
  for (const char* strategy : {"pipeline = 4\n", "pipeline = 4\nschedule = \"gpipe\"\nblocking_p2p = true\n",
                               "pipeline = 4\noverlap = false\n",
                               "pipeline = 2\nschedule = \"interleaved\"\nvirtual_stages = 2\n"}) {
    CAPTURE(strategy);
    const std::string text = profiled(4, 8, 2, 1e6, 10) + "[strategy]\n" + strategy;
    const Scenario scenario = read_scenario_text(text, "test.toml");
    const Plan plan = write_schedule(scenario);
    REQUIRE_FALSE(plan.schedule->crosses_step());
    const double one = simulate_in_child(run_of(scenario, plan, 1), *scenario.cluster, scenario.engine).end_s;
    const double five =
        simulate_in_child(run_of(scenario, plan, 5), *scenario.cluster, scenario.engine).end_s;
    // The first stage starts first and ends last, so consecutive steps do not overlap.
    CHECK(five == Approx(5 * one).epsilon(1e-6));
  }
}

TEST_CASE("as many micro-batches as are allowed are checked and simulated in seconds") {
  // Checking all pairs of the 65,536 backward passes, which all add to the same gradients, would take
  // minutes.
  const int microbatches = kSanitized ? 4'096 : 65'536;
  const StrategyRun run = run_text(profiled(1, microbatches, 1, 1e6));
  CHECK(run.trace.end_s == Approx(microbatches * (kForward + kBackward)).epsilon(kTolerance));
}

namespace {

// With `thorough`, each strategy on each fabric in each fidelity, otherwise in one of them in turn.
void check_folded_strategies(bool thorough) {
  struct Fabric {
    const char* cluster;  // preset
    int nodes, devices;
    const char* slow;  // overrides of [cluster]
  };
  const Fabric fabrics[] = {
      {"dgx-a100", 2, 8, ""},
      {"dgx-a100", 4, 8, ""},
      {"dgx-a100", 2, 8, "slow = [{device = 5, factor = 0.7}]\n"},
      {"dgx-a100", 4, 8, "slow = [{link = \"node1.nic3\", factor = 0.5}]\noversubscription = 2.0\n"},
      {"dgx1-v100", 1, 8, ""},
      {"dgx1-v100", 2, 8, ""},
      {"dgx1-v100", 2, 8, "slow = [{device = 3, factor = 0.6}, {link = \"node0.nic1\", factor = 0.25}]\n"},
      {"ethernet", 4, 4, ""},
      {"ethernet", 4, 4, "slow = [{device = 0, factor = 0.5}]\n"},
      {"ethernet", 4, 4, "slow = [{link = \"node2.nic0\", factor = 0.3}]\n"},
  };
  const char* strategies[] = {
      "",
      "pipeline = 2\n",
      "pipeline = 4\nplacement = [\"pipeline\", \"data\"]\nschedule = \"gpipe\"\n",
      "pipeline = 2\nblocking_p2p = true\noverlap = false\n",
      "pipeline = 2\nschedule = \"interleaved\"\nvirtual_stages = 3\n",
      "gradients = \"parameter-server\"\n[strategy.parameter_server]\nservers = 2\n",
      R"(pipeline = 2
gradients = "parameter-server"
[strategy.parameter_server]
placement = "colocated"
)",
  };
  int number = 0;
  for (const Fabric& fabric : fabrics)
    for (const char* strategy : strategies)
      for (const char* fidelity : {"flow", "auto", "chunk"}) {
        if (!thorough && number++ % (kSanitized ? 16 : 4) != 0) continue;
        CAPTURE(fabric.cluster, fabric.nodes, fabric.slow, strategy, fidelity);
        const std::string text =
            "[model.transformer]\nlayers = 4\nhidden = 256\nheads = 4\nvocabulary = 1000\nsequence_length = "
            "64\n"
            "[training]\nmicro_batch = 1\nglobal_batch = " +
            std::to_string(4 * fabric.nodes * fabric.devices) + "\n[cluster]\npreset = \"" + fabric.cluster +
            "\"\nnodes = " + std::to_string(fabric.nodes) + "\n" + fabric.slow +
            "[simulation]\nfidelity = \"" + fidelity + "\"\n[strategy]\nbucket_mb = 2\n" + strategy;
        const Scenario scenario = read_scenario_text(text, "test.toml");
        const Plan plan = write_schedule(scenario);
        const Run run = run_of(scenario, plan, 2);
        testing::check_folding(run, *scenario.cluster, scenario.engine, *fabric.slow == '\0');
      }
}

}  // namespace

TEST_CASE("folded and unfolded: every op of every rank ends at the same time") {
  check_folded_strategies(false);
}

// ctest does not run this one.
TEST_CASE("all strategies folded and unfolded", "[.][exhaustive]") {
  check_folded_strategies(true);
}
