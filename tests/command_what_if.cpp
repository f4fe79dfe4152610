// Tests the effect of 10 % more of each resource: simulated, estimated from the critical path, and computed
// by hand.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

constexpr double kGain = 1 - 1 / 1.1;

json simulated(const std::string& arguments) {
  const Outcome run = run_rehearse("simulate " + arguments + " --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

json with_faster(const json& result, const std::string& resource) {
  for (const json& one : result["critical_path"]["ten_percent_faster"])
    if (one["resource"] == resource) return one;
  return nullptr;
}

void check_saved(const json& result, const std::string& resource, double expected_s) {
  CAPTURE(resource);
  const json one = with_faster(result, resource);
  REQUIRE_FALSE(one.is_null());
  CHECK(one["saved_s"].get<double>() == Approx(expected_s).epsilon(1e-9));
  CHECK(one["path_saved_s"].get<double>() == Approx(expected_s).epsilon(1e-9));
  CHECK(one["step_time_s"].get<double>() ==
        Approx(result["step_time_s"].get<double>() - one["saved_s"].get<double>()).epsilon(1e-12));
}

double on_path(const json& result, const std::string& kind) {
  for (const json& segment : result["critical_path"]["segments"])
    if (segment["kind"] == kind) return segment["seconds"];
  return 0;
}

// Returns a scenario with stages of 10 ms forward and 20 ms backward, on chips connected to one switch.
std::string scenario(int stages, int nodes, int batch, double parameters, const std::string& strategy) {
  return "[model.profiled]\nstages = " + std::to_string(stages) +
         "\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = 8\np2p_bytes = 0\n"
         "parameters = " +
         std::to_string(parameters) + "\n[training]\nglobal_batch = " + std::to_string(batch) +
         "\nprecision = \"bf16\"\noptimizer = \"sgd\"\n[cluster]\nnodes = " + std::to_string(nodes) +
         "\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 8\ncpu_cores = 4\n"
         "[cluster.fabric]\nkind = \"switch\"\nlatency_us = 50\n[simulation]\nprotocol = \"ideal\"\n"
         "[strategy]\nbucket_mb = 1000\n" +
         strategy;
}

}  // namespace

TEST_CASE("the path of 1F1B is m + p - 1 slots of computing") {
  const Scratch scratch;
  const json result =
      simulated(scratch.write("pipe.toml", scenario(4, 4, 8, 0, "")) + " --set cluster.latency_us=0");
  const double slots_s = (8 + 4 - 1) * 0.030;
  CHECK(result["step_time_s"].get<double>() == Approx(slots_s).epsilon(1e-9));
  CHECK(on_path(result, "forward") + on_path(result, "backward") == Approx(slots_s).epsilon(1e-9));
  CHECK(result["critical_path"]["segments"].size() == 2);
  check_saved(result, "compute", slots_s * kGain);
  // Measured stage times do not separate memory from arithmetic, and nothing is sent.
  CHECK(result["critical_path"]["ten_percent_faster"].size() == 1);
}

TEST_CASE("a ring that nothing hides: bytes and latency by the formula") {
  const Scratch scratch;
  const json result = simulated(
      scratch.write("ring.toml", scenario(1, 4, 4, 50e6, "pipeline = 1\ndata = 4\noverlap = false\n")));
  const int n = 4;
  const double bytes = 2 * 50e6;  // bf16
  const double bytes_s = 2.0 * (n - 1) / n * bytes / 1e9, latency_s = 2 * (n - 1) * 2 * 50e-6;
  CHECK(on_path(result, "gradient sync") == Approx(bytes_s).epsilon(1e-9));
  CHECK(on_path(result, "latency") == Approx(latency_s).epsilon(1e-9));
  const double compute_s = 0.030 + on_path(result, "optimizer");
  CHECK(result["step_time_s"].get<double>() == Approx(compute_s + bytes_s + latency_s).epsilon(1e-9));
  check_saved(result, "compute", compute_s * kGain);
  check_saved(result, "network_links", bytes_s * kGain);
  check_saved(result, "latency", latency_s * kGain);
  check_saved(result, "memory_bandwidth", on_path(result, "optimizer") * kGain);
  // Changing the scenario gives the same result.
  const json faster = simulated(scratch.path("ring.toml") + " --set cluster.node.nic_gbps=8.8");
  CHECK(with_faster(result, "network_links")["step_time_s"].get<double>() ==
        Approx(faster["step_time_s"].get<double>()).epsilon(1e-12));
}

TEST_CASE("a straggler's computing is what counts") {
  const Scratch scratch;
  const json result = simulated(
      scratch.write("slow.toml", scenario(1, 4, 4, 50e6, "pipeline = 1\ndata = 4\noverlap = false\n")) +
      " --set 'cluster.slow=[{device=2,factor=0.5}]'");
  CHECK(on_path(result, "forward") + on_path(result, "backward") == Approx(2 * 0.030).epsilon(1e-9));
  CHECK(on_path(result, "waiting") == 0);
}

TEST_CASE("one server and n workers: n gradients in, an update, n weights out") {
  const Scratch scratch;
  const json result = simulated(scratch.write(
      "ps.toml", scenario(1, 3, 3, 50e6,
                          "pipeline = 1\ndata = 3\noverlap = false\ngradients = \"parameter-server\"\n"
                          "[strategy.parameter_server]\nservers = 1\nplacement = \"dedicated\"\n")));
  const double incast_s = 3 * 2 * 50e6 / 1e9;
  CHECK(on_path(result, "gradient sync") == Approx(2 * incast_s).epsilon(1e-9));
  const double server_s = on_path(result, "server work");
  CHECK(server_s > 0);
  check_saved(result, "network_links", 2 * incast_s * kGain);
  check_saved(result, "servers", server_s * kGain);
  check_saved(result, "compute", 0.030 * kGain);
}

TEST_CASE("communication behind computation: the path changes as it gets faster") {
  const Scratch scratch;
  const std::string ring =
      scratch.write("ring.toml", scenario(1, 4, 4, 50e6, "pipeline = 1\ndata = 4\noverlap = false\n"));
  for (const std::string& of : {shipped_scenario("resnet50-ps"), shipped_scenario("bert-large-ring"), ring}) {
    CAPTURE(of);
    const json result = simulated(of);
    double sum = 0;
    for (const json& segment : result["critical_path"]["segments"]) sum += segment["seconds"].get<double>();
    CHECK(sum == Approx(result["step_time_s"].get<double>()).epsilon(1e-12));
    // Faster computation saves at most what it shortens the current critical path by.
    const json compute = with_faster(result, "compute");
    CHECK(compute["saved_s"].get<double>() <= compute["path_saved_s"].get<double>() * (1 + 1e-9));
    CHECK(compute["saved_s"].get<double>() > 0);
  }
}

TEST_CASE("runs of very many events are not simulated again") {
  const Scratch scratch;
  const std::string pipeline = scratch.write("pipe.toml", scenario(2, 2, 200, 0, ""));
  const json result = simulated(pipeline + " --set simulation.steps=400");
  REQUIRE(result["engine"]["events"].get<double>() > 500'000);
  const json compute = with_faster(result, "compute");
  CHECK(compute["step_time_s"].is_null());
  CHECK(compute["saved_s"].is_null());
  CHECK(compute["path_saved_s"].get<double>() ==
        Approx(on_path(result, "forward") * 3 * kGain).epsilon(1e-6));
  CHECK_FALSE(with_faster(simulated(pipeline), "compute")["step_time_s"].is_null());
}

// At full speed the second stage's all-reduce begins at 92 ms, when its third activation gradient has just
// been sent, and shares the NIC only with the fourth. With computation 1.1 times as fast, it begins at 87.27
// ms, when the third has 2.73 of its 10 ms left: sharing the NIC, that ends at 92.73 ms, and the fourth at
// 112.73 ms. Then the first stage computes for 4 / 1.1 ms and reduces for 20 ms.
TEST_CASE("faster computing can make a step longer, and the answer says so") {
  const Scratch scratch;
  const std::string path = scratch.write("anomaly.toml", R"([model.profiled]
stages = 2
forward_ms = [2, 10]
backward_input_ms = [2, 5]
backward_weight_ms = [2, 5]
p2p_bytes = 5e6
parameters = 5e6
[training]
global_batch = 8
precision = "bf16"
optimizer = "sgd"
[cluster]
nodes = 4
[cluster.node]
device = "a100-80"
devices = 1
nic_gbps = 4
[cluster.fabric]
kind = "switch"
[simulation]
protocol = "ideal"
[strategy]
pipeline = 2
schedule = "gpipe"
bucket_mb = 5
)");
  const json result = simulated(path);
  const double optimizer_s = on_path(result, "optimizer");
  CHECK(result["step_time_s"].get<double>() == Approx(0.136 + optimizer_s).epsilon(1e-9));
  const double sharing_s = 0.0927 + 0.0000272727272727;
  const json compute = with_faster(result, "compute");
  CHECK(compute["step_time_s"].get<double>() ==
        Approx(sharing_s + 0.020 + 0.004 / 1.1 + 0.020 + optimizer_s / 1.1).epsilon(1e-9));
  CHECK(compute["saved_s"].get<double>() < 0);
  CHECK(compute["note"].get<std::string>().find("the step gets longer") == 0);
  CHECK_FALSE(with_faster(result, "network_links").contains("note"));
  const Outcome text = run_rehearse("simulate " + path);
  CHECK(text.out.find("compute would make the step longer by 0.3 %") != std::string::npos);
}
