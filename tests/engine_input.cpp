// Tests the input of a training run: steps against closed forms of loaders and storage, folded against
// unfolded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/link_timeline.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kComputed = 0.030;  // s: forward and backward pass of the profiled stage, for one sample
constexpr double kSample = 1048576;  // bytes in the storage
constexpr double kDevice = 10 * 1024, kHostLink = 10e9;  // bytes of a prepared sample; bytes/s to the device
constexpr double kCopied = kDevice / kHostLink;

std::string scenario(int nodes, int devices, int microbatches, const std::string& data,
                     const std::string& more = "") {
  return fmt::format(
      "[model.profiled]\nstages = 1\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = 8\n"
      "p2p_bytes = 1\n[training]\nglobal_batch = {}\nprecision = \"bf16\"\n"
      "[cluster]\nnodes = {}\n[cluster.node]\ndevice = \"a100-80\"\ndevices = {}\n{}nic_gbps = 8\n"
      "cpu_cores = 64\nhost_link_gb_per_s = {}\n[cluster.fabric]\nkind = \"switch\"\nlatency_us = 0\n"
      "[simulation]\nprotocol = \"ideal\"\n"
      "[data]\nsamples = 1000\nsample_kb = 1024\ndevice_kb = 10\n{}\n{}",
      nodes * devices * microbatches, nodes, devices,
      devices > 1 ? "interconnect = \"nvswitch\"\nnvlink_gb_per_s = 100\n" : "", kHostLink / 1e9, data, more);
}

struct InputOutcome {
  Scenario scenario;
  Metrics metrics;
  Trace trace;
};

InputOutcome input_outcome(const std::string& text) {
  InputOutcome run;
  run.scenario = read_scenario_text(text, "test.toml", {});
  const Plan plan = write_schedule(run.scenario);
  Run job = one_job(*plan.schedule, plan.endpoints, plan.schedule->repeats(run.scenario.steps));
  job.jobs.front().phases.front().beyond = plan.schedule->beyond();
  run.trace = simulate_in_child(job, *run.scenario.cluster, run.scenario.engine);
  run.metrics = evaluate(run.trace, run.scenario, plan);
  CHECK(run.metrics.breakdown.total_s() == Approx(run.metrics.step_time_s).epsilon(1e-9));
  return run;
}

}  // namespace

TEST_CASE("input: workers load min(w / t, 1 / step) batches a second") {
  struct Case {
    const char* kind;
    int workers, prefetch, microbatches;
    double core_ms;
  };
  for (const Case& c : std::vector<Case>{{"batches", 1, 2, 1, 100},
                                         {"batches", 3, 1, 1, 100},
                                         {"batches", 4, 2, 1, 100},  // 25 ms a batch: hidden
                                         {"batches", 2, 2, 3, 70},
                                         {"batches", 3, 2, 2, 250},
                                         {"batches", 5, 1, 4, 151},  // 30.2 ms: just exposed
                                         {"samples", 2, 2, 1, 100},
                                         {"samples", 8, 1, 3, 100},
                                         {"samples", 3, 3, 2, 100}}) {
    CAPTURE(c.kind, c.workers, c.prefetch, c.microbatches);
    const InputOutcome run = input_outcome(scenario(
        1, 1, c.microbatches,
        fmt::format("loader = {{kind = \"{}\", workers = {}, prefetch = {}}}\npreparation.core_ms = {}\n",
                    c.kind, c.workers, c.prefetch, c.core_ms)));
    // Threads that divide a batch finish it together; one batch is loaded at a time.
    // With one batch for each worker, it begins the next one when the previous one has been copied.
    const double load_s = c.core_ms / 1000 + (c.prefetch == 1 ? kCopied : 0);
    const double batch_s = std::max(kComputed, load_s / c.workers);
    CHECK(run.metrics.step_time_s == Approx(c.microbatches * batch_s).epsilon(1e-9));
    CHECK(run.metrics.breakdown.data_stall_s ==
          Approx(c.microbatches * (batch_s - kComputed)).margin(1e-12).epsilon(1e-9));
  }
}

TEST_CASE("input: without workers the process loads, copies and then trains") {
  for (const int m : {1, 3}) {
    const InputOutcome run =
        input_outcome(scenario(1, 1, m, "loader.workers = 0\npreparation.core_ms = 40\n"));
    CHECK(run.metrics.step_time_s == Approx(m * (0.040 + kCopied + kComputed)).epsilon(1e-9));
    CHECK(run.metrics.breakdown.data_stall_s == Approx(m * (0.040 + kCopied)).epsilon(1e-9));
  }
}

TEST_CASE("input: more workers than cores slow one another down") {
  const auto step_s = [](int workers) {
    return input_outcome(
               scenario(1, 4, 1, fmt::format("loader.workers = {}\npreparation.core_ms = 960\n", workers)))
        .metrics.step_time_s;
  };
  CHECK(step_s(8) == Approx(0.960 / 8).epsilon(1e-9));
  CHECK(step_s(16) == Approx(0.960 / 16).epsilon(1e-9));  // 4 x 16 of 64 cores
  CHECK(step_s(32) == Approx(0.960 / 16).epsilon(1e-9));
}

TEST_CASE("input: all readers share the storage, and each reads no faster than it prepares") {
  struct Case {
    const char* storage;
    int nodes, devices, workers;
    double core_ms, bytes_per_s, readers;  // of a storage, and the devices that share it
    double alone_s;                        // of a batch without other readers
  };
  constexpr double kMB = 1e6;
  for (const Case& c : std::vector<Case>{
           {"kind = \"local\", read_gb_per_s = 0.1", 2, 4, 2, 1, 100 * kMB, 4, kSample / (100 * kMB) + 0.001},
           {"kind = \"local\", read_gb_per_s = 10", 2, 2, 1, 50, 10e9, 2, kSample / 10e9 + 0.050},
           {"kind = \"shared\", read_gb_per_s = 0.1", 2, 4, 2, 1, 100 * kMB, 8,
            kSample / (100 * kMB) + 0.001},
           {"kind = \"shared\", read_gb_per_s = 10, client_gb_per_s = 0.05", 2, 2, 4, 1, 50 * kMB, 2,
            kSample / (50 * kMB) + 0.001},
           {"kind = \"shared\", read_gb_per_s = 10, reader_gb_per_s = 0.005", 1, 2, 4, 10, 10e9, 2,
            kSample / 5e6 + 0.010},
           {"kind = \"shared\", read_gb_per_s = 10, latency_us = 150000", 1, 2, 3, 10, 10e9, 2,
            kSample / 10e9 + 0.160},
           {"kind = \"local\", read_gb_per_s = 10, operations_per_s = 20", 1, 2, 4, 1, 20 * kSample, 2,
            kSample / (20 * kSample) + 0.001}}) {
    CAPTURE(c.storage, c.nodes, c.devices, c.workers);
    const std::string data = fmt::format("loader.workers = {}\npreparation.core_ms = {}\nstorage = {{{}}}\n",
                                         c.workers, c.core_ms, c.storage);
    const double loaded_s = std::max(c.alone_s / c.workers, c.readers * kSample / c.bytes_per_s);
    const double expected_s = std::max(kComputed, loaded_s);
    for (const char* more : {"", "[simulation]\nfold = false\n"}) {
      std::string text = scenario(c.nodes, c.devices, 1, data);
      if (*more) text.replace(text.find("[simulation]\n"), 13, more);
      for (const char* fidelity : {"flow", "auto"}) {
        std::string one = text;
        one.insert(one.find("protocol = "), fmt::format("fidelity = \"{}\"\n", fidelity));
        CAPTURE(more, fidelity);
        CHECK(input_outcome(one).metrics.step_time_s == Approx(expected_s).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("input: storage on the fabric takes the bandwidth of network cards") {
  // A network card carries 1 GB/s: two nodes of four devices each read 4 MiB a step from two servers.
  const InputOutcome run =
      input_outcome(scenario(2, 4, 1, "storage = {kind = \"shared\", read_gb_per_s = 0.1, servers = 2}\n"));
  CHECK(run.scenario.cluster->storage_endpoints() == 2);
  CHECK(run.scenario.cluster->server_nodes() == 0);
  CHECK(run.metrics.step_time_s == Approx(8 * kSample / 0.1e9).epsilon(1e-6));
  CHECK(run.metrics.busiest_link.starts_with("storage"));
  CHECK(run.metrics.network_bytes_per_step == Approx(8 * kSample));
  // Servers that are faster than their cards: the 4 MiB of each take as long as a card takes for them.
  const InputOutcome narrow =
      input_outcome(scenario(2, 16, 1, "storage = {kind = \"shared\", read_gb_per_s = 10, servers = 1}\n"));
  CHECK(narrow.metrics.step_time_s == Approx(32 * kSample / 1e9).epsilon(1e-6));
}

TEST_CASE("input: a cache takes its share of the reads away") {
  // 1,000 samples of 1 MiB; half of them fit. CoorDL's cache replaces nothing, so half are read.
  const std::string storage = "storage = {kind = \"local\", read_gb_per_s = 0.01}\n";
  const InputOutcome run =
      input_outcome(scenario(1, 1, 1, storage + "cache = {policy = \"no-replacement\", gib = 0.48828125}\n"));
  CHECK(run.metrics.step_time_s == Approx(0.5 * kSample / 0.01e9).epsilon(1e-9));
  const InputOutcome all = input_outcome(scenario(1, 1, 1, storage + "cache.gib = 1\n"));
  CHECK(all.metrics.step_time_s == Approx(kComputed).epsilon(1e-9));
}

TEST_CASE("input: what is read appears on the timelines of its links") {
  // 2 nodes of 2 devices, folded; a repetition has 4 batches (2 workers, 2 each ahead), of which 4 are
  // recorded.
  const InputOutcome run = input_outcome(
      scenario(2, 2, 1, "loader.workers = 2\nstorage = {kind = \"local\", read_gb_per_s = 0.05}\n"));
  const std::vector<LinkTimeline> links = link_timelines(run.trace, *run.scenario.cluster, 1, 200);
  REQUIRE(links.size() == 1);
  CHECK(run.scenario.cluster->link_name(links[0].link) == "node0.drive.out");
  double bytes = 0;
  for (const double bytes_per_s : links[0].bytes_per_s) bytes += bytes_per_s * run.trace.end_s / 200;
  CHECK(bytes == Approx(4 * 4 * 2 * kSample).epsilon(1e-9));
  CHECK(run.metrics.network_bytes_per_step == 0);  // drives are not on the network
}
