// Checks the writers of reports on a result made by hand: golden files, and what every reader of these files
// can rely on.
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "models/text/error.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/rank_names.hpp"
#include "simulator/report/report.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Sourced sourced(double value, Basis basis, const std::string& source) {
  return {value, basis, source};
}

// Two stages with two data-parallel ranks each, on four devices of two nodes behind one switch.
struct Example {
  Scenario scenario;
  Plan plan;
  Trace trace;

  Example() {
    scenario.name = "example, \"two\" stages";
    scenario.model = model_preset("gpt2");
    scenario.model.title = "Toy";
    scenario.training.global_batch = 8;
    scenario.training.micro_batch = 2;
    scenario.strategy.data = 2;
    scenario.strategy.pipeline = 2;
    scenario.microbatches = 2;
    ClusterParts cluster;
    cluster.name = "lab";
    cluster.nodes = 2;
    cluster.node.devices = 2;
    cluster.node.device.name = "chip";
    cluster.node.device.title = "Chip";
    cluster.node.device.peak_flops[static_cast<std::size_t>(Precision::bf16)] =
        sourced(1e12, Basis::published, "data sheet");
    cluster.node.device.memory_bytes = sourced(80e9, Basis::published, "data sheet");
    cluster.node.device.memory_bandwidth = sourced(1e12, Basis::published, "data sheet");
    cluster.node.device.compute_capability = 80;
    cluster.node.device.gemm_efficiency = sourced(0.7, Basis::measured, "benchmark");
    cluster.node.device.kernel_overhead_s = sourced(1e-6, Basis::guess, "");
    cluster.node.device_bandwidth = 10e9;
    cluster.node.nic_bandwidth = 10e9;
    cluster.node.device.power_w = sourced(300, Basis::published, "data sheet");
    cluster.node.device.idle_power_w = sourced(60, Basis::measured, "meter");
    cluster.node.power.host = sourced(200, Basis::guess, "as others");
    cluster.node.power.host_idle = sourced(100, Basis::guess, "as others");
    cluster.node.power.nic = sourced(10, Basis::published, "data sheet");
    cluster.fabric.port_power = {sourced(5, Basis::guess, "as others"),
                                 sourced(5, Basis::guess, "as others")};
    cluster.sources = {"cable"};
    scenario.cluster = make_cluster(cluster);
    scenario.cost.per_device_hour = sourced(1.8, Basis::published, "a page, 2025");
    scenario.cost.carbon_g_per_kwh = sourced(400, Basis::published, "a report");
    scenario.training.target_samples = 1'000'001;

    TraceParts parts{2, 2, {}};
    const auto send = Message::Direction::send, receive = Message::Direction::receive;
    ClassOf first{"stage 0", {0, 1}, {}, {}, {At{1, 0, 0}}};
    first.ops = {compute("forward 0"), message("send 0", send, 1, 1, {0}), compute("forward 1"),
                 message("send 1", send, 1, 1, {2}), all_reduce("sync", {2}, 2)};
    first.ops[0].first_layer = 0;
    first.ops[0].last_layer = 3;
    first.ops[0].microbatch = 0;
    first.rows = {{0, 0, 0, 1}, {2, 1, 1, 2}, {1, 1, 1, 1.5}, {3, 2, 2, 2.5}, {4, 2, 2, 3}};
    ClassOf second{"stage 1", {2, 3}, {}, {}, {At{1, 1, 0}}};
    second.ops = {message("receive 0", receive, 1, -1), compute("forward 0", {0}),
                  message("receive 1", receive, 1, -1), compute("forward 1", {2})};
    second.rows = {{1, 1.5, 1.5, 2.5}, {3, 2.5, 2.5, 3.5}, {0, 0, 1, 1.5}, {2, 1.5, 2, 2.5}};
    parts.classes = {first, second};
    const auto schedule = schedule_of(parts);
    schedule->samples = 8;
    schedule->tokens = 8 * 1024;
    Work& work = schedule->works[0];
    work.model_flops = 0.5e12;
    work.extra_flops = 0.1e12;
    Kernel kernel;
    kernel.kind = Kernel::Kind::gemm;
    work.kernels = {kernel};
    Tensor weights, kept;
    weights.kind = TensorKind::weight;
    weights.bytes = 30e9;
    kept.kind = TensorKind::activation;
    kept.bytes = 2e9;
    schedule->programs[0].tensors = {weights, kept};
    schedule->programs[0].ops[0].writes = {1};
    schedule->programs[0].ops[2].reads = {1};
    schedule->programs[1].tensors = {weights};
    plan.schedule = schedule;
    plan.endpoints = {0, 1, 2, 3};
    plan.stage_layers = {4, 4};
    plan.notes = {"Layers are assumed to be equal."};
    trace = make_trace(parts, schedule);
    trace.bytes_total = 600;
    const auto nic = scenario.cluster->find_links("node0.nic0.out");
    trace.link_use = {{nic.at(0), 2, 7e9}};
  }

  Result result() const {
    return {scenario,
            plan,
            trace,
            evaluate(trace, scenario, plan),
            critical_path(trace, 0),
            {{Resource::compute, 3.25, 0.27}, {Resource::network_links, std::nullopt, 0.045}}};
  }
};

nlohmann::json read_trace(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");  // reads uncompressed files as well
  REQUIRE(file != nullptr);
  char buffer[65536];
  for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  gzclose(file);
  return nlohmann::json::parse(text);
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("rehearse-" + std::to_string(getpid()) + "-" + name))
      .string();
}

}  // namespace

TEST_CASE("metrics of the example") {
  const Metrics m = Example().result().metrics;
  CHECK(m.step_time_s == 3.5);
  CHECK(m.samples_per_s == Approx(8 / 3.5));
  CHECK(m.tokens_per_s == Approx(8 * 1024 / 3.5));
  CHECK(m.devices == 4);
  // 8 ops of 0.5 TFLOP on 4 devices of 1 TFLOP/s in 3.5 s; a fifth more with recomputation.
  CHECK(m.model_tflops_per_device == Approx(8 * 0.5 / (4 * 3.5)));
  CHECK(m.mfu == Approx(8 * 0.5 / (4 * 3.5)));
  CHECK(m.hfu == Approx(8 * 0.6 / (4 * 3.5)));
  // 7 GB at 10 GB/s in a step of 3.5 s.
  CHECK(m.busiest_utilization == Approx(0.2));
  CHECK(m.busiest_link == "node0.nic0.out");
  CHECK(m.network_bytes_per_step == 600);
  CHECK(m.memory.total == 32e9);
  // Stage 0 computes in [0,2] and waits for the sync in [2,3] and for the pipeline in [3,3.5]. Stage 1 has a
  // bubble in [0,1] and a transfer in [1,1.5].
  CHECK(m.breakdown.compute_s == Approx(2));
  CHECK(m.breakdown.exposed_communication_s == Approx((1 + 0.5) / 2));
  CHECK(m.breakdown.pipeline_bubble_s == Approx((0.5 + 1) / 2));
}

TEST_CASE("a failed job has no metrics, but a reason") {
  Example example;
  example.trace.job_failed = {true};
  example.trace.failures = {"link leaf0-spine1 died at 0.5 s"};
  try {
    evaluate(example.trace, example.scenario, example.plan);
    FAIL("no error");
  } catch (const RunError& error) {
    CHECK(std::string(error.what()) == "the job failed: link leaf0-spine1 died at 0.5 s");
  }
}

TEST_CASE("money and energy in words, and which key would tell them") {
  Example example;
  // 4 devices for 3.5 s at 1.80 an hour; 2 s of them at 4 x 300 + 430 W, 1.5 s at 4 x 60 + 430.
  CHECK(cost_sentence(example.result()) ==
        "A step costs 0.00700 USD (4 GPUs at 1.80 USD an hour) and 1.18 Wh.");
  CHECK(training_sentence(example.result()) ==
        "Training on 1.02 G tokens takes 125,001 steps, in 5.06 days: 486 GPU-hours, 875 USD, 148 kWh, 59.2 "
        "kg CO2.");
  example.scenario.cost.per_device_hour->basis = Basis::guess;
  CHECK(cost_sentence(example.result()) ==
        "A step costs 0.00700 USD (4 GPUs at a guessed 1.80 USD an hour) and 1.18 Wh.");
  example.scenario.cost.per_device_hour.reset();
  CHECK(cost_sentence(example.result()) ==
        "A step costs 1.18 Wh; money: unknown without cost.price_per_device_hour.");
  CHECK(training_sentence(example.result()) ==
        "Training on 1.02 G tokens takes 125,001 steps, in 5.06 days: 486 GPU-hours, 148 kWh, 59.2 kg CO2.");
  example.scenario.training.target_samples = 0;
  CHECK(training_sentence(example.result()).empty());
  const Result result = example.result();  // metrics need the cluster that was simulated
  ClusterParts bare;
  bare.node.devices = 1;
  bare.node.interconnect = Node::Interconnect::none;
  bare.node.device.compute_capability = 80;
  example.scenario.cluster = make_cluster(bare);
  CHECK(cost_sentence(result) ==
        "Cost of a step: unknown without cost.price_per_device_hour; energy: unknown without "
        "cluster.node.device.power_w.");
  example.scenario.cost.per_device_hour = sourced(1.8, Basis::published, "a page, 2025");
  example.scenario.cost.energy_price_per_kwh = sourced(0.1, Basis::published, "a page, 2025");
  CHECK(cost_sentence(result) ==
        "Cost of a step: unknown without cluster.node.device.power_w; energy: unknown without "
        "cluster.node.device.power_w.");
  // 8 x 1.80 USD x 3.5 s / 3,600 s.
  bare.node.whole_devices = 8;
  example.scenario.cluster = make_cluster(bare);
  example.scenario.cost.energy_price_per_kwh = {};
  CHECK(cost_sentence(result) ==
        "A step costs 0.0140 USD (8 GPUs at 1.80 USD an hour, 1 used: nodes are paid whole); energy: unknown "
        "without "
        "cluster.node.device.power_w.");
}

TEST_CASE("formats of the example are those of the golden files") {
  const Example example;
  const Result result = example.result();
  std::ostringstream text, json, csv;
  write_text(result, text);
  write_json(result, json);
  write_csv(result, csv);
  check_golden("example.txt", text.str());
  check_golden("example.json", json.str());
  check_golden("example.csv", csv.str());
  const auto parsed = nlohmann::json::parse(json.str());
  CHECK(parsed["step_time_s"].get<double>() == result.metrics.step_time_s);
  CHECK(parsed["mfu"].get<double>() ==
        result.metrics.mfu);  // exactly equal: numbers survive writing and reading
}

TEST_CASE("the bottleneck is told with a way out") {
  struct Case {
    std::string name;
    std::function<void(Result&, Scenario&)> change;
    std::vector<std::string> told;
  };
  const auto only = [](Result& r, double compute_s) {
    r.metrics.breakdown = {};
    r.metrics.breakdown.compute_s = compute_s;
  };
  const std::vector<Case> cases = {
      {"bubble",
       [&](Result& r, Scenario& s) {
         only(r, 2.5);
         r.metrics.breakdown.pipeline_bubble_s = 1;
         s.strategy.pipeline = 8;
         s.microbatches = 96;
         s.training.micro_batch = 1;
         s.training.global_batch = 1536;
       },
       {"8 stages and 96 micro-batches leave 7 of 103 slots idle", "--set training.global_batch=3072",
        "7 of 199"}},
      {"bubble with room for virtual stages",
       [&](Result& r, Scenario&) {
         only(r, 2.5);
         r.metrics.breakdown.pipeline_bubble_s = 1;
       },
       {"2 stages and 2 micro-batches leave 1 of 3 slots idle", "2 virtual stages would leave 1 of 5",
        "--set strategy.schedule=interleaved --set strategy.virtual_stages=2)"}},
      {"bubble with large micro-batches that do not interleave",
       [&](Result& r, Scenario& s) {
         only(r, 2.5);
         r.metrics.breakdown.pipeline_bubble_s = 1;
         s.microbatches = 3;
       },
       {"2 stages and 3 micro-batches leave 1 of 4 slots idle", "--set training.micro_batch=1)", "1 of 7"}},
      {"gradient sync without overlap",
       [&](Result& r, Scenario& s) {
         only(r, 2.5);
         r.metrics.breakdown.exposed_s[Purpose::gradient_sync] = 1;
         s.strategy.overlap = false;
       },
       {"exposed gradient sync, 28.6 %", "node0.nic0.out carries data for 0.700 s of the step's 3.500 s",
        "--set strategy.overlap=true"}},
      {"gradient sync with servers",
       [&](Result& r, Scenario& s) {
         only(r, 2.5);
         r.metrics.breakdown.exposed_s[Purpose::gradient_sync] = 1;
         s.strategy.gradients = "parameter-server";
         s.strategy.parameter_server.servers = 2;
       },
       {"a ring sends less over each network card (try --set strategy.gradients=all-reduce)"}},
      {"gradient sync with a busy server",
       [&](Result& r, Scenario& s) {
         only(r, 2.5);
         r.metrics.breakdown.exposed_s[Purpose::gradient_sync] = 1;
         r.metrics.busiest_link = "server0.nic0.in";
         r.metrics.busiest_place = {LinkPlace::Kind::network_card, true};
         s.strategy.gradients = "parameter-server";
         s.strategy.parameter_server.servers = 2;
       },
       {"--set cluster.server_nodes=4 --set strategy.parameter_server.servers=4"}},
      {"blocking transfers",
       [&](Result& r, Scenario& s) {
         only(r, 2.5);
         r.metrics.breakdown.exposed_s[Purpose::pipeline] = 1;
         s.strategy.blocking_p2p = true;
       },
       {"exposed pipeline transfer, 28.6 %", "--set strategy.blocking_p2p=false"}},
      {"data",
       [&](Result& r, Scenario&) {
         only(r, 2.5);
         r.metrics.breakdown.data_stall_s = 1;
       },
       {"loading data: ranks wait for a batch for 28.6 % of the step"}},
      {"others",
       [&](Result& r, Scenario&) {
         only(r, 2.5);
         r.metrics.breakdown.other_s = 1;
       },
       {"waiting for slower ranks, 28.6 % of the step"}},
      {"nothing but compute",
       [&](Result& r, Scenario&) { only(r, 3.5); },
       {"compute, 100.0 % of the step; while it computes, a GPU reaches 34.3 % of its dense bf16 peak"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Example example;
    Result result = example.result();
    c.change(result, example.scenario);
    const std::string sentence = bottleneck_sentence(result);
    CAPTURE(sentence);
    for (const std::string& told : c.told) CHECK(sentence.find(told) != std::string::npos);
  }
}

TEST_CASE("a measured run is not told of links that it did not use") {
  Example example;
  Result result = example.result();
  result.metrics.breakdown = {};
  result.metrics.breakdown.exposed_s[Purpose::gradient_sync] = 1;
  result.metrics.busiest_link = "node0.nic0.out";
  result.metrics.busiest_utilization = 0.2;
  const auto tells = [&] { return bottleneck_sentence(result).find("node0.nic0.out") != std::string::npos; };
  CHECK(tells());
  Measurement measured;
  result.measured = &measured;
  measured.executor = "emulated";
  CHECK(tells());
  measured.executor = "host";  // over the loopback, for example
  CHECK_FALSE(tells());
}

TEST_CASE("what does not fit is told first, and the largest loss still") {
  Example example;
  CHECK(memory_sentence(example.result()) == "Memory: stage 0 is the fullest: 29.8 of 74.5 GiB.");
  // Returns the clause for GPT-2 on two stages, whose devices have `share` of the memory that the fullest
  // stage needs.
  const auto told = [&](double share) {
    Result result = example.result();
    MemoryUse& use = result.metrics.memory;
    use = {};
    use.total = peak_worker_bytes(*write_schedule(example.scenario).schedule);
    use.weights = 0.9 * use.total;
    use.activations = 0.1 * use.total;
    use.capacity = share * use.total;
    use.fits = false;
    use.fullest = "stage 0";
    std::ostringstream text;
    write_text(result, text);
    const std::size_t memory = text.str().find("Does not fit"), loss = text.str().find("Bottleneck: ");
    CHECK(memory < loss);
    CHECK(loss != std::string::npos);
    CHECK(memory_sentence(result) == "Does not fit: " + overflow_clause(result) + ".");
    return overflow_clause(result);
  };
  const auto ends_in = [](const std::string& text, const std::string& end) {
    CAPTURE(text, end);
    CHECK(text.ends_with(end));
  };
  CHECK(told(0.9).rfind("stage 0 needs ", 0) == 0);
  CHECK(told(0.9).find(" GiB (weights ") != std::string::npos);
  ends_in(told(0.9), "(try --set training.recompute=selective --set training.recompute_layers=3)");
  ends_in(told(0.5), "(try --set training.recompute=full --set training.recompute_layers=7)");
  example.scenario.training.recompute = Recompute::full;
  ends_in(told(0.95), "smaller micro-batches store fewer activations (try --set training.micro_batch=1)");
  example.scenario.training.micro_batch = 1;
  ends_in(told(0.75), "2 ranks can shard the optimizer's state (try --set strategy.zero_stage=1)");
  CHECK(told(0.01).find(", which still needs ") != std::string::npos);
  example.scenario.strategy.gradients = "local-sgd";  // each rank has its own weights
  ends_in(told(0.75),
          "twice as many stages hold half of the model each (try --set strategy.pipeline=4 --set "
          "strategy.data=1)");
}

TEST_CASE("the inputs in short: by group, and every guess by its name") {
  const Input::Group compute = Input::Group::compute, network = Input::Group::network;
  const Basis published = Basis::published, measured = Basis::measured, guess = Basis::guess;
  struct Case {
    std::vector<Input> inputs;
    std::string told;
  };
  for (const Case& c : std::vector<Case>{
           {{{compute, published, "peak", "a100", "data sheet"}, {network, published, "network", "dgx", ""}},
            "compute published (a100), network published (dgx)"},
           {{{compute, measured, "a", "x", ""},
             {compute, measured, "b", "x", ""},
             {compute, guess, "c", "x", ""}},
            "compute measured (x, 2 figures); 1 guess (c)"},
           {{{compute, guess, "a", "x", ""},
             {compute, guess, "b", "x", ""},
             {compute, guess, "c", "x", ""},
             {compute, guess, "d", "x", ""},
             {network, guess, "network", "y", ""}},
            "5 guesses (a, b, c and 2 more)"}}) {
    CHECK(in_short(c.inputs) == c.told);
  }
}

TEST_CASE("the Chrome trace is what its readers expect") {
  const Example example;
  const Result result = example.result();
  for (const std::string ending : {".json", ".json.gz"}) {
    CAPTURE(ending);
    const std::string path = temporary("trace" + ending), again = temporary("again" + ending);
    write_chrome_trace(result, path);
    write_chrome_trace(result, again);
    CHECK(read_file(path) == read_file(again));
    const auto trace = read_trace(path);
    std::filesystem::remove(path);
    std::filesystem::remove(again);

    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
    std::map<long, std::string> flows;
    std::set<std::string> processes;
    std::size_t spans = 0, counters = 0;
    for (const auto& event : trace["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "X") {
        ++spans;
        const double ts = event["ts"], duration = event["dur"];
        CHECK(ts >= 0);
        CHECK(duration >= 0);
        threads[{event["pid"], event["tid"]}].emplace_back(ts, ts + duration);
        for (const char* key : {"op", "kind", "step", "ready_us", "deps", "status"}) {
          CAPTURE(key);
          CHECK(event["args"].contains(key));
        }
      } else if (phase == "s" || phase == "f") {
        flows[event["id"]] += phase;
      } else if (phase == "C") {
        ++counters;
      } else if (event["name"] == "process_name") {
        processes.insert(event["args"]["name"].get<std::string>());
      }
    }
    CHECK(spans == example.trace.spans.size());
    CHECK(counters > 0);
    CHECK(processes == std::set<std::string>{"busiest links", "stage 0, data 0-1 (2 ranks)",
                                             "stage 1, data 0-1 (2 ranks)"});
    CHECK(flows.size() == 2);  // two messages
    for (const auto& [id, phases] : flows) CHECK(phases == "sf");
    for (auto& [thread, times] : threads) {
      for (std::size_t i = 1; i < times.size(); ++i) CHECK(times[i].first >= times[i - 1].second);
    }
    CHECK(trace["otherData"]["result"]["step_time_s"] == 3.5);
    CHECK(trace["otherData"]["scenario"] == example.scenario.name);
    const auto& forward = *std::find_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                                        [](const auto& e) { return e["name"] == "forward 0"; });
    CHECK(forward["args"]["critical"] == true);
    CHECK(forward["args"]["layer"] == "0-3");
    CHECK(forward["args"]["microbatch"] == 0);
    CHECK(forward["args"]["flops"] == 0.6e12);
    const auto& sync = *std::find_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                                     [](const auto& e) { return e["name"] == "sync"; });
    CHECK_FALSE(sync["args"].contains("critical"));
    CHECK(sync["args"]["kind"] == "all-reduce");
    CHECK(sync["args"]["members"] == 2);
    CHECK(sync["args"]["deps"] == nlohmann::json::array({2}));
    CHECK(sync["ts"] == 2e6);
    CHECK(sync["dur"] == 1e6);
  }
}

TEST_CASE("link counters carry the bytes that crossed the link") {
  const Example example;
  const std::string path = temporary("links.json");
  write_chrome_trace(example.result(), path);
  const auto trace = read_trace(path);
  std::filesystem::remove(path);
  // Both ranks of stage 0 (node 0) send two messages of 50 bytes each through this NIC: 200 bytes in all.
  double bytes = 0, since = 0, rate = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C" || event["name"] != "node0.nic0.out") continue;
    bytes += rate * (event["ts"].get<double>() - since) * 1e-6;
    since = event["ts"];
    rate = event["args"]["bytes_per_s"];
  }
  CHECK(rate == 0);
  CHECK(bytes == Approx(200).epsilon(1e-6));
}

TEST_CASE("a trace that cannot be written is an error") {
  const Example example;
  CHECK_THROWS_AS(write_chrome_trace(example.result(), "/no such folder/trace.json"), RunError);
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_AS(write_chrome_trace(example.result(), "/dev/full"), RunError);
  }
}

TEST_CASE("classes are named by what they stand for") {
  Example example;
  CHECK(class_name(example.trace, 0) == "stage 0, data 0-1 (2 ranks)");
  example.trace.classes[0].ranks = {1};
  CHECK(class_name(example.trace, 0) == "stage 0, data 1 (rank 1)");
  example.trace.classes[0].ranks = {0, 3};  // not a block of the mesh
  CHECK(class_name(example.trace, 0) == "stage 0 (ranks 0, 3)");
  Trace two = example.trace;
  two.run.jobs.push_back(two.run.jobs[0]);
  CHECK(class_name(two, 1) == "job: stage 1, data 0-1 (2 ranks)");
}

TEST_CASE("figures for people") {
  CHECK(with_digits(1024, 4) == "1,024");
  CHECK(with_digits(1234567, 3) == "1,234,567");
  CHECK(with_digits(0.01234, 3) == "0.0123");
  CHECK(with_digits(-1234.5, 3) == "-1,234");
  CHECK(with_digits(0, 3) == "0");
  CHECK(with_prefix(128000) == "128 k");
  CHECK(with_prefix(3.5e6) == "3.50 M");
  CHECK(with_digits(9.996, 3) == "10.0");
  CHECK(with_digits(0.09996, 3) == "0.100");
  CHECK(with_prefix(999'400) == "999 k");
  CHECK(with_prefix(999'600) == "1.00 M");
  CHECK(with_prefix(999.6e6) == "1.00 G");
  CHECK(with_prefix(999.6e9) == "1.00 T");
  CHECK(with_prefix(62) == "62.0");
  CHECK(in_percent(0.4567) == "45.7 %");
  CHECK(TimeScale(24.63)(3.1) == "3.10 s");
  CHECK(TimeScale(0.0123)(0.0123) == "12.30 ms");
  CHECK(TimeScale(5e-6)(5e-6) == "5.000 us");
  CHECK(counted(1, "stage") == "1 stage");
  CHECK(counted(8, "stage") == "8 stages");
  CHECK(counted(1024, "micro-batch") == "1,024 micro-batches");
  CHECK(in_gibibytes(80 * 1073741824.0) == "80.0");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_field("plain") == "plain");
}
