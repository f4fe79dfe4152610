// Tests gradient synchronization from a scenario's text to the step's figures: against closed forms to 0.1 %,
// and folded against unfolded to 1e-9.
#include <algorithm>

#include "simulator/costs/compute.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kForward = 0.010, kBackward = 0.020;    // per micro-batch, in the scenarios below
constexpr double kNicBandwidth = 1e9, kLatency = 20e-6;  // bytes/s; seconds from node to node

// Returns a scenario with one stage of 10 ms forward and 12 + 8 ms backward on each of n nodes.
std::string profiled(int n, int microbatches, const std::string& strategy) {
  return "[model.profiled]\nstages = 1\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = 8\n"
         "p2p_bytes = 1\nparameters = 25e6\n[training]\nglobal_batch = " +
         std::to_string(microbatches * n) +
         "\nprecision = \"fp32\"\n[cluster]\nnodes = " + std::to_string(n) +
         "\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 8\n"
         "[cluster.fabric]\nkind = \"switch\"\nlatency_us = 10\n[simulation]\nprotocol = "
         "\"ideal\"\n[strategy]\n" +
         strategy;
}
constexpr double kGradientBytes = 25e6 * 4;

double ring_s(int n, double bytes) {
  return 2 * (n - 1) * (bytes / (n * kNicBandwidth) + kLatency);
}

struct GradientRun {
  Scenario scenario;
  Plan plan;
  Trace trace;
  Metrics metrics;

  // Returns the seconds of all computations of one pass in the first program.
  double work_s(Pass pass) const {
    double seconds = 0;
    for (const Op& op : plan.schedule->programs[0].ops)
      if (op.kind == OpKind::compute && op.pass == pass)
        seconds += work_time_s(plan.schedule->works[op.work], scenario.cluster->node().device);
    return seconds;
  }
};

GradientRun run_gradients(const std::string& text, const std::vector<std::string>& overrides = {}) {
  GradientRun run;
  run.scenario = read_scenario_text(text, "test.toml", overrides);
  run.plan = write_schedule(run.scenario);
  check(*run.plan.schedule);
  Run job = one_job(*run.plan.schedule, run.plan.endpoints, run.plan.schedule->repeats(1));
  run.trace = simulate_in_child(job, *run.scenario.cluster, run.scenario.engine);
  run.metrics = evaluate(run.trace, run.scenario, run.plan);
  return run;
}

// Returns the seconds of kernels that move these bytes on the device of `run`.
double moves_s(const GradientRun& run, double bytes, double launches = 1) {
  const Device& device = run.scenario.cluster->node().device;
  return bytes / (device.memory_bandwidth.value * device.memory_efficiency.value) +
         launches * device.kernel_overhead_s.value;
}

}  // namespace

TEST_CASE("first device: scatter, broadcast, forward, gather, loss, scatter, backward, reduce, update") {
  for (const int n : {1, 2, 4, 8})
    for (const char* fidelity : {"flow", "auto", "chunk"}) {
      CAPTURE(n, fidelity);
      const double bandwidth = 10e9, hop_s = 5e-6;
      const GradientRun run = run_gradients(
          "[model.multi_layer_perceptron]\nwidths = [2048, 2048, 2048, 1024]\n[training]\nmicro_batch = 16\n"
          "global_batch = " +
          std::to_string(3 * 16 * n) +
          "\nprecision = \"fp32\"\n[cluster]\nnodes = 1\n[cluster.node]\n"
          "device = \"a100-80\"\ndevices = " +
          std::to_string(n) +
          "\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 10\ndevice_latency_us = 5\nnic_gbps = 8\n"
          "[cluster.fabric]\nkind = \"switch\"\n[strategy]\ngradients = \"first-device\"\n"
          "[simulation]\nprotocol = \"ideal\"\nfidelity = \"" +
          fidelity + "\"\n");
      std::vector<LinkId> route;
      double latency = 0;
      if (n > 1) run.scenario.cluster->route(0, 1, -1, route);
      for (const LinkId link : route) {
        latency += run.scenario.cluster->latency_s(link);
        CHECK(run.scenario.cluster->bandwidth(link) == bandwidth);
      }
      if (n > 1) CHECK(latency == Approx(hop_s));
      const double weights = 4.0 * (2 * 2049 * 2048 + 2049 * 1024), inputs = 16 * 2048 * 4,
                   outputs = 16 * 1024 * 4;
      // The first device's link carries all traffic to and from the other devices.
      const auto spread = [&](double bytes) { return n == 1 ? 0 : (n - 1) * bytes / bandwidth + latency; };
      const double chain = n == 1 ? 0 : weights / bandwidth + (n - 1) * latency;
      const double compute = run.work_s(Pass::forward) + run.work_s(Pass::backward) + run.work_s(Pass::other);
      const double update = run.work_s(Pass::optimizer);
      CHECK(run.metrics.step_time_s ==
            Approx(compute + 3 * (spread(inputs) + 2 * spread(outputs) + 2 * chain) + update).epsilon(1e-9));
      CHECK(run.trace.bytes_total ==
            Approx(3 * (n - 1) * (inputs + 2 * outputs + 2 * weights)).epsilon(1e-12));
      CHECK(run.metrics.samples_per_s == Approx(48 * n / run.metrics.step_time_s));
    }
}

TEST_CASE("local SGD: a step is k steps alone and one all-reduce of the weights, by k") {
  for (const int n : {1, 2, 8})
    for (const int k : {1, 2, 5, 16})
      for (const char* precision : {"fp32", "bf16"}) {
        CAPTURE(n, k, precision);
        const GradientRun run = run_gradients(
            profiled(n, 2, "gradients = \"local-sgd\"\n[strategy.local_sgd]\nevery = " + std::to_string(k)),
            {std::string("training.precision=") + precision});
        const double sync = n == 1 ? 0 : ring_s(n, kGradientBytes);  // fp32 master weights
        const double update = run.work_s(Pass::optimizer);           // of all steps, and one cast
        CHECK(run.metrics.step_time_s ==
              Approx(2 * (kForward + kBackward) + (update + sync) / k).epsilon(kTolerance));
        CHECK(run.metrics.breakdown.total_s() == Approx(run.metrics.step_time_s).epsilon(1e-9));
        CHECK(run.metrics.breakdown.exposed_communication_s == Approx(sync / k).epsilon(kTolerance));
        CHECK(run.metrics.samples_per_s == Approx(2 * n / run.metrics.step_time_s).epsilon(1e-12));
        CHECK(run.metrics.network_bytes_per_step ==
              Approx(n == 1 ? 0 : 2 * (n - 1) * kGradientBytes / k).epsilon(1e-9));
        CHECK(run.metrics.busiest_utilization == Approx(n == 1 ? 0
                                                               : 2.0 * (n - 1) / n * kGradientBytes / k /
                                                                     kNicBandwidth / run.metrics.step_time_s)
                                                     .epsilon(1e-6));
        // Memory does not grow with the number of steps in a round.
        const GradientRun one =
            run_gradients(profiled(n, 2, "gradients = \"local-sgd\"\nlocal_sgd.every = 1\n"),
                          {std::string("training.precision=") + precision});
        CHECK(run.metrics.memory.total == one.metrics.memory.total);
      }
}

// Each step's update waits for a sum that began with the step: the longer of the two sets the pace.
TEST_CASE("a delayed all-reduce has the whole next step, and needs a second buffer of gradients") {
  for (const int n : {1, 2, 8})
    for (const int microbatches : {2, 8})
      for (const bool overlap : {true, false}) {
        CAPTURE(n, microbatches, overlap);
        const std::vector<std::string> overlaps = {std::string("strategy.overlap=") +
                                                   (overlap ? "true" : "false")};
        const GradientRun run =
            run_gradients(profiled(n, microbatches, "gradients = \"delayed-all-reduce\"\n"), overlaps);
        const double sum = n == 1 ? 0 : ring_s(n, kGradientBytes);
        const double alone = microbatches * (kForward + kBackward) + run.work_s(Pass::optimizer);
        CHECK(run.metrics.step_time_s ==
              Approx(overlap ? std::max(alone, sum) : alone + sum).epsilon(kTolerance));
        CHECK(run.metrics.breakdown.exposed_communication_s ==
              Approx(overlap ? std::max(0.0, sum - alone) : sum).epsilon(kTolerance).margin(1e-6));
        CHECK(run.metrics.network_bytes_per_step ==
              Approx(n == 1 ? 0 : 2 * (n - 1) * kGradientBytes).epsilon(1e-9));
        CHECK(run.metrics.memory.gradients == Approx(2 * kGradientBytes).epsilon(1e-12));
      }
}

TEST_CASE("Horovod's fusion: from per-layer sync to one all-reduce behind the backward pass") {
  // Eight equal layers of 1,024^2 weights and 1,024 biases.
  const std::string text =
      "[model.multi_layer_perceptron]\nwidths = [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024]\n"
      "[training]\nglobal_batch = 64\nmicro_batch = 16\nprecision = \"fp32\"\noptimizer = \"sgd\"\n"
      "[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 8\n"
      "[cluster.fabric]\nkind = \"switch\"\nlatency_us = 10\n[simulation]\nprotocol = "
      "\"ideal\"\n[strategy]\n";
  const double layer = 1024 * 1025 * 4;
  const GradientRun ddp = run_gradients(text + "bucket_mb = 0.01\n");
  const GradientRun layers = run_gradients(text + "fusion_mb = 0\ncycle_ms = 0\n");
  CHECK(layers.metrics.step_time_s == Approx(ddp.metrics.step_time_s).epsilon(1e-9));

  const double forward = ddp.work_s(Pass::forward), backward = ddp.work_s(Pass::backward),
               update = ddp.work_s(Pass::optimizer);
  const GradientRun one = run_gradients(text + "cycle_ms = 500\n");
  REQUIRE(backward < 0.5);
  CHECK(
      one.metrics.step_time_s ==
      Approx(forward + 0.5 + 2 * moves_s(one, 2 * 8 * layer) + ring_s(4, 8 * layer) + update).epsilon(1e-9));
  // The backward pass computes, then the loop sleeps.
  CHECK(one.metrics.breakdown.exposed_s.at(Purpose::fusion_cycle) == Approx(0.5 - backward).epsilon(1e-9));

  // Three layers fit into the buffer: two buckets of three layers and one of two, one after another.
  const GradientRun three = run_gradients(text + "cycle_ms = 500\nfusion_mb = 13\n");
  CHECK(three.metrics.step_time_s ==
        Approx(forward + 0.5 + 2 * 2 * moves_s(three, 2 * 3 * layer) + 2 * ring_s(4, 3 * layer) +
               2 * moves_s(three, 2 * 2 * layer) + ring_s(4, 2 * layer) + update)
            .epsilon(1e-9));
}

TEST_CASE("compression: kernels and transfers by hand") {
  // One bucket of 25 million gradients in fp32 without overlap: everything is sequential.
  const double e = 4, gradients = 25e6, all = e * gradients;
  for (const int n : {2, 4}) {
    CAPTURE(n);
    const auto step = [&](const std::string& keys) {
      return run_gradients(profiled(n, 1, "overlap = false\ncompression = " + keys));
    };
    const auto check_step = [&](const GradientRun& run, double sync) {
      std::vector<double> optimizer;
      for (const Op& op : run.plan.schedule->programs[0].ops)
        if (op.pass == Pass::optimizer)
          optimizer.push_back(
              work_time_s(run.plan.schedule->works[op.work], run.scenario.cluster->node().device));
      REQUIRE(optimizer.size() == 1);
      CHECK(run.metrics.step_time_s == Approx(kForward + kBackward + sync + optimizer[0]).epsilon(1e-6));
    };
    const GradientRun none = step("\"none\"");
    check_step(none, ring_s(n, all));

    const GradientRun fp16 = step("\"fp16\"");
    check_step(fp16, moves_s(fp16, 6 * gradients) + moves_s(fp16, 4 * gradients) + ring_s(n, all / 2) +
                         moves_s(fp16, 6 * gradients));

    const GradientRun top = step("\"top-k\"\ntop_k_density = 0.001\n");
    const double pairs = 25'000 * 8.0;  // 0.1 % of 25 million, with a value and an index each
    check_step(
        top, moves_s(top, 3 * all) + moves_s(top, 2 * all) + moves_s(top, 4 * all, 4) +
                 moves_s(top, all + pairs) + moves_s(top, pairs) +
                 (n - 1) * (pairs / kNicBandwidth + kLatency) +  // all-gather: n-1 steps with one share each
                 moves_s(top, all) + moves_s(top, n * 25'000 * (8.0 + 8)));

    const GradientRun bit = step("\"one-bit\"");
    const double signs = 25e6 / 8 / n, share = all / n;
    check_step(bit,
               moves_s(bit, 3 * all) + moves_s(bit, all) + moves_s(bit, 2 * all) +
                   moves_s(bit, all + n * signs) + 2 * (n - 1) * ((signs + 4) / kNicBandwidth + kLatency) +
                   moves_s(bit, n * signs + share) + moves_s(bit, 3 * share) + moves_s(bit, share) +
                   moves_s(bit, 2 * share) + moves_s(bit, share + signs) + moves_s(bit, n * signs + all));
  }
  // PowerSGD of rank 2 on one matrix of 4096 x 4096 and its 4096 biases.
  const GradientRun low = run_gradients(
      "[model.multi_layer_perceptron]\nwidths = [4096, 4096]\n[training]\nglobal_batch = 64\nmicro_batch = "
      "16\n"
      "precision = \"fp32\"\n[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\n"
      "nic_gbps = 8\n[cluster.fabric]\nkind = \"switch\"\nlatency_us = 10\n[simulation]\nprotocol = "
      "\"ideal\"\n"
      "[strategy]\noverlap = false\ncompression = \"powersgd\"\npowersgd_rank = 2\n");
  const double side = 4096, matrix = 4 * side * side;
  const auto product_s = [&](double m, double n, double k) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::gemm;
    kernel.m = m;
    kernel.n = n;
    kernel.k = k;
    kernel.bytes = 4 * (m * k + k * n + m * n);
    return kernel_time_s(kernel, low.scenario.cluster->node().device, Precision::fp32);
  };
  const double sync = moves_s(low, 3 * matrix) + product_s(side, 2, side) +  // error added, P = M Q
                      ring_s(4, 4 * (2 * side + side)) +                     // P and the biases
                      moves_s(low, (3 + 3 + 3) * 4 * side, 4) +              // Gram-Schmidt of two columns
                      product_s(side, 2, side) + ring_s(4, 4 * 2 * side) +   // Q = M^T P
                      product_s(side, side, 2) + moves_s(low, 3 * matrix);   // P Q^T, new error
  CHECK(low.metrics.step_time_s ==
        Approx(low.work_s(Pass::forward) + low.work_s(Pass::backward) + sync + low.work_s(Pass::optimizer))
            .epsilon(1e-6));
}

namespace {

// With `thorough`, each way on each fabric in each fidelity, otherwise in one of them in turn.
void check_folded_ways(bool thorough) {
  struct Way {
    const char* keys;
    const char* training = "";
    // Long enough for SimGrid, which treats events within 1 ns as simultaneous.
    int sequence = 64;
  };
  const Way ways[] = {
      {"gradients = \"local-sgd\"\nlocal_sgd.every = 2\n"},
      {"gradients = \"local-sgd\"\nlocal_sgd.every = 2\npipeline = 2\n"},
      {"gradients = \"delayed-all-reduce\"\n"},
      {"gradients = \"delayed-all-reduce\"\noverlap = false\npipeline = 2\n"},
      {"fusion_mb = 2\ncycle_ms = 0.2\n"},
      {"fusion_mb = 64\ncycle_ms = 0.5\npipeline = 2\n"},
      {"bucket_mb = 2\ncompression = \"fp16\"\n", "gradient_precision = \"fp32\"\n"},
      {"bucket_mb = 2\ncompression = \"top-k\"\n"},
      {"bucket_mb = 2\ncompression = \"one-bit\"\npipeline = 2\n"},
      {"bucket_mb = 2\ncompression = \"powersgd\"\n"},
      {"gradients = \"first-device\"\n"},
      {"fusion_mb = 2\ncycle_ms = 0.2\npipeline = 2\nschedule = \"interleaved\"\nvirtual_stages = 2\n"},
      {"fusion_mb = 2\ncycle_ms = 0.2\ncompression = \"top-k\"\n"},
      {"fusion_mb = 1\ncycle_ms = 0.2\ncompression = \"one-bit\"\npipeline = 2\n"},
      {"bucket_mb = 2\ntensor = 2\n", "", 4096},
      {"bucket_mb = 2\ntensor = 2\nsequence_parallel = true\npipeline = 2\n", "recompute = \"full\"\n", 4096},
      {"bucket_mb = 2\ntensor = 4\nsequence_parallel = true\n", "recompute = \"selective\"\n", 4096},
      {"tensor = 2\nplacement = [\"data\", \"tensor\", \"pipeline\"]\nall_reduce = \"auto\"\n", "", 4096},
      {"gradients = \"local-sgd\"\nlocal_sgd.every = 2\ntensor = 2\npipeline = 2\n", "", 4096},
      {"bucket_mb = 2\ntensor = 2\ngradients = \"parameter-server\"\nparameter_server.servers = 2\n", "",
       4096},
      {"bucket_mb = 2\ntensor = 2\nsequence_parallel = true\ncompression = \"powersgd\"\n", "", 4096},
      {"bucket_mb = 2\nzero_stage = 1\n"},
      {"zero_stage = 2\npipeline = 2\n"},
      {"zero_stage = 3\n", "recompute = \"full\"\n"},
      {"fsdp = \"hybrid\"\nprefetch = 0\n"},
      {"fsdp = \"hybrid\"\nshard_degree = 2\ntensor = 2\nreshard_after_forward = false\n", "", 4096},
  };
  struct Fabric {
    const char* cluster;
    int nodes, devices;
    const char* slow;
  };
  const Fabric fabrics[] = {{"dgx-a100", 2, 8, ""},
                            {"dgx1-v100", 1, 8, ""},
                            {"dgx1-v100", 2, 8, "slow = [{device = 3, factor = 0.6}]\n"},
                            {"ethernet", 4, 4, "slow = [{link = \"node2.nic0\", factor = 0.3}]\n"},
                            {"ethernet", 1, 4, ""}};
  int number = 0, turn = 0;
  for (const Fabric& fabric : fabrics)
    for (const Way& way : ways)
      for (const char* fidelity : {"flow", "auto", "chunk"}) {
        if (!thorough && !kSanitized && turn++ % 4 != 0) continue;
        const std::string keys = way.keys;
        if (keys.find("first-device") != std::string::npos && fabric.nodes > 1) continue;
        // Tensor groups inside nodes are the same on all fabrics, except for the links within a node.
        if (way.sequence > 64 && fabric.nodes != 2) continue;
        if (kSanitized && (*fidelity != 'a' || number++ % 8 != 0)) continue;
        CAPTURE(fabric.cluster, fabric.nodes, fabric.slow, keys, fidelity);
        const std::string text =
            "[model.transformer]\nlayers = 4\nhidden = 256\nheads = 4\nvocabulary = 1000\nsequence_length "
            "= " +
            std::to_string(way.sequence) + "\n[training]\nmicro_batch = 1\nglobal_batch = " +
            std::to_string(4 * fabric.nodes * fabric.devices) + "\n" + way.training +
            "[cluster]\npreset = \"" + fabric.cluster + "\"\nnodes = " + std::to_string(fabric.nodes) + "\n" +
            fabric.slow + "[simulation]\nfidelity = \"" + fidelity + "\"\n[strategy]\n" + keys;
        const Scenario scenario = read_scenario_text(text, "test.toml");
        const Plan plan = write_schedule(scenario);
        const Run run = one_job(*plan.schedule, plan.endpoints, 2);
        testing::check_folding(run, *scenario.cluster, scenario.engine, false);
      }
}

}  // namespace

TEST_CASE(
    "ways to bring gradients together, folded and unfolded: every op of every rank ends at the same time") {
  check_folded_ways(false);
}

// ctest does not run this one.
TEST_CASE("all ways to bring gradients together, folded and unfolded", "[.][exhaustive]") {
  check_folded_ways(true);
}
