// Tests uncertainty intervals of predicted steps and table rows, and rows predicted without each term.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "simulator/commands/predicting/propagation.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

// One device without gaps between kernels, with so much memory bandwidth that only products take time.
const std::string kProducts = R"([model.multi_layer_perceptron]
widths = [4096, 4096, 4096, 4096]
[training]
global_batch = 4096
micro_batch = 4096
precision = "bf16"
[framework]
loss_bytes_per_logit = {value = 115, basis = "guess", source = "test", uncertainty = 0}
[cluster]
nodes = 1
[cluster.node]
devices = 1
[cluster.node.device]
memory_gib = {value = 80, basis = "published", source = "test"}
memory_gb_per_s = {value = 1e8, basis = "published", source = "test"}
gemm_efficiency = {value = 0.5, basis = "measured", source = "test", uncertainty = 0.1}
gemm_prologue_k = {value = 256, basis = "guess", source = "test", uncertainty = 0}
memory_efficiency = {value = 0.8, basis = "guess", source = "test", uncertainty = 0}
optimizer_bytes_per_parameter = {value = 44, basis = "guess", source = "test", uncertainty = 0}
[cluster.node.device.peak_tflops]
fp32 = {value = 20, basis = "published", source = "test"}
bf16 = {value = 300, basis = "published", source = "test"}
[simulation]
protocol = "ideal"
)";

json simulated(const std::string& file, const std::string& more) {
  const Outcome run = run_rehearse("simulate " + file + " --format json " + more);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

// Returns half the logarithmic width of an interval around 1 for an effect that is equally large on both
// sides. 1.645 standard deviations cover 90 % of a normal distribution; runs also differ among themselves.
double half_width(double effect) {
  return 1.645 * std::hypot(effect, rehearse::kDeviationOfRuns);
}

}  // namespace

TEST_CASE("an interval follows from the uncertainty of each constant") {
  const Scratch scratch;
  const std::string file = scratch.write("products.toml", kProducts);
  CHECK(simulated(file, "").count("interval_s") == 0);
  const json result = simulated(file, "--uncertainty");
  const double step_s = result["step_time_s"];
  REQUIRE(result["uncertainty"].size() == 1);  // all other constants are certain
  const json& effect = result["uncertainty"][0];
  CHECK(effect["basis"] == "measured");
  CHECK(effect["deviation"] == 0.1);
  // Time is inversely proportional to the reached share of the peak.
  CHECK(effect["better_s"].get<double>() == Approx(step_s * std::exp(-0.1)).epsilon(1e-4));
  CHECK(effect["worse_s"].get<double>() == Approx(step_s * std::exp(0.1)).epsilon(1e-4));
  CHECK(result["interval_s"][0].get<double>() == Approx(step_s * std::exp(-half_width(0.1))).epsilon(1e-4));
  CHECK(result["interval_s"][1].get<double>() == Approx(step_s * std::exp(half_width(0.1))).epsilon(1e-4));

  // A second constant: with k = 4096, the prologue is 256 / 4352 of the time; the effects add up in squares.
  const json both = simulated(file, "--uncertainty --set cluster.node.device.gemm_prologue_k.uncertainty=1");
  REQUIRE(both["uncertainty"].size() == 2);
  const double longer = std::log((4096 + 256 * std::exp(1.0)) / (4096 + 256));
  CHECK(both["interval_s"][1].get<double>() ==
        Approx(step_s * std::exp(half_width(std::hypot(0.1, longer)))).epsilon(1e-3));

  // A constant without its own deviation has that of its basis; for "measured" it is 0.02.
  std::string text = kProducts;
  text.replace(text.find(", uncertainty = 0.1"), 19, "");
  const json by_basis = simulated(scratch.write("basis.toml", text), "--uncertainty");
  CHECK(by_basis["uncertainty"][0]["deviation"] == 0.02);

  const Outcome told = run_rehearse("simulate --uncertainty " + file);
  CHECK(told.out.find("Uncertainty: nine of ten measurements are expected between ") != std::string::npos);
  CHECK(told.out.find("gemm_efficiency (10 % uncertain: ") != std::string::npos);
  const Outcome csv = run_rehearse("simulate --uncertainty --format csv " + file);
  CHECK(csv.out.find(",step_time_low_s,step_time_high_s\n") != std::string::npos);
}

TEST_CASE("links are certain under the ideal protocol and uncertain under NCCL's, profiles under both") {
  const Scratch scratch;
  const std::string file = scratch.write("stages.toml", kMeasuredStages);
  const json ideal = simulated(file, "--uncertainty --set simulation.protocol=ideal");
  REQUIRE(ideal["uncertainty"].size() == 1);
  CHECK(ideal["uncertainty"][0]["constant"] == "profiled times");
  CHECK(ideal["uncertainty"][0]["basis"] == "measured");
  const json nccl = simulated(file, "--uncertainty");
  REQUIRE(nccl["uncertainty"].size() == 3);
  for (const json& effect : nccl["uncertainty"])
    CHECK(effect["better_s"].get<double>() < effect["worse_s"].get<double>());
  // If nothing is transferred, the step is proportional to the stage times.
  const json alone =
      simulated(file, "--uncertainty --set simulation.protocol=ideal --set model.profiled.p2p_bytes=0");
  const json& effect = alone["uncertainty"][0];
  CHECK(
      effect["worse_s"].get<double>() ==
      Approx(alone["step_time_s"].get<double>() * std::exp(effect["deviation"].get<double>())).epsilon(1e-3));
}

// ln(high / step)^2 grows by (1.645 x ln(step with usual launches / step))^2; low does not change.
TEST_CASE("where no framework is named, the interval reaches up to usual launches") {
  const Scratch scratch;
  const std::string file = scratch.write("plain.toml", R"([model.transformer]
layers = 4
hidden = 1024
heads = 16
vocabulary = 32000
sequence_length = 1024
[training]
global_batch = 8
precision = "bf16"
[cluster]
nodes = 1
[strategy]
tensor = 8
)");
  const auto cost = [](const char* key, const char* value) {
    return std::string(" --set 'framework.") + key + "={value=" + value +
           ",basis=\"guess\",source=\"test\"}'";
  };
  struct Case {
    const char *cluster, *kernel_us, *collective_us, *step_ms;
  };
  for (const Case& c : {Case{"dgx-a100", "48", "45", "13"}, Case{"dgx-h100", "80", "200", "50"}}) {
    CAPTURE(c.cluster);
    const std::string on = std::string("--set cluster.preset=") + c.cluster;
    const json open = simulated(file, on + " --uncertainty"),
               none = simulated(file, on + " --uncertainty --set training.framework=none"),
               usual = simulated(file, on + cost("kernel_launch_us", c.kernel_us) +
                                           cost("collective_launch_us", c.collective_us) +
                                           cost("step_ms", c.step_ms));
    const double step_s = none["step_time_s"],
                 launches = std::log(usual["step_time_s"].get<double>() / step_s);
    const auto above = [&](const json& result) {
      return std::log(result["interval_s"][1].get<double>() / step_s) / 1.645;
    };
    CHECK(open["step_time_s"] == none["step_time_s"]);
    CHECK(open["interval_s"][0].get<double>() == Approx(none["interval_s"][0].get<double>()));
    CHECK(launches > 0.1);
    CHECK(above(open) == Approx(std::hypot(above(none), launches)).epsilon(1e-3));
  }
}

TEST_CASE("a table tells how many measurements lie in their intervals") {
  const Scratch scratch;
  const std::string file = scratch.write("stages.toml", kMeasuredStages);
  const double step_s = simulated(file, "")["step_time_s"];
  const std::string keys =
      "model.profiled.stages,model.profiled.forward_ms,model.profiled.backward_input_ms,model.profiled."
      "backward_weight_ms,model.profiled.p2p_bytes,training.global_batch,training.micro_batch,cluster.nodes,"
      "cluster.node.device,cluster.node.devices,cluster.node.nic_gbps,cluster.fabric.kind,cluster.fabric."
      "latency_us";
  const std::string values = "4,10,12,8,20e6,16,2,4,a100-80,1,80,switch,1";
  std::string table = "id,source,note,measured_step_s," + keys + "\n";
  table += "same,test,," + std::to_string(step_s) + "," + values + "\n";
  table += "twice,test,," + std::to_string(2 * step_s) + "," + values + "\n";
  const std::string csv = scratch.write("own.csv", table);
  const Outcome run = run_rehearse("validate --uncertainty --format json " + csv);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json told = json::parse(run.out)[0];
  CHECK(told["intervals"]["rows"] == 2);
  CHECK(told["intervals"]["inside"] == 1);
  CHECK(told["rows"][0]["inside"] == true);
  CHECK(told["rows"][1]["inside"] == false);
  const json interval = told["rows"][0]["interval_s"];
  CHECK(told["intervals"]["median_width"].get<double>() ==
        Approx((interval[1].get<double>() - interval[0].get<double>()) / step_s));
  const Outcome text = run_rehearse("validate --uncertainty " + csv);
  CHECK(text.out.find("Intervals: 1 of 2 measurements inside (50.0 %)") != std::string::npos);

  struct Refused {
    std::string arguments, told;
  };
  for (const Refused& refused : std::vector<Refused>{
           {csv + " --explain sane", "has no row \"sane\" (did you mean \"same\"?)"},
           {csv + " zero-bubble-1f1b --explain same", "--explain is given with 2 tables; allowed: one table"},
           {std::string(REHEARSE_TESTS_DIR) + "/golden/runs/two-ranks.json --uncertainty",
            "is a recorded run, given with --uncertainty; allowed: tables"},
           {"nccl-lut-v100 --explain x", "is a table of collectives, given with --explain"},
           {"deepbench-products --explain x", "is a table of kernels, given with --explain"}}) {
    CAPTURE(refused.arguments);
    const Outcome bad = run_rehearse("validate " + refused.arguments);
    CHECK(bad.status == 2);
    CHECK(bad.err.find(refused.told) != std::string::npos);
  }
}

TEST_CASE("a row is explained by what it would be without each term") {
  const Scratch scratch;
  const std::string csv = scratch.write(
      "own.csv",
      "id,source,note,measured_step_s,model.preset,training.global_batch,training.micro_batch,"
      "training.recompute,strategy.overlap,cluster.preset,cluster.nodes,cluster.devices_per_node\n"
      "alone,a paper,a note,0.5,gpt2,8,4,selective,false,dgx-a100,1,1\n"
      "two,a paper,,0.5,gpt2,8,4,selective,false,dgx-a100,1,2\n");
  const auto explained = [&](const std::string& row) {
    const Outcome run = run_rehearse("validate --format json --explain " + row + " " + csv);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out);
  };
  // On one device kernels run one after another, so the step is the sum over their kinds.
  const json alone = explained("alone");
  const double step_s = alone["predicted_step_s"];
  CHECK(alone["error"].get<double>() == Approx(step_s / 0.5 - 1));
  CHECK(alone["result"]["step_time_s"] == step_s);
  double kernels_s = 0, least_s = 1e9;
  for (const json& term : alone["without"]) {
    const std::string name = term["term"];
    const double without_s = term["step_time_s"];
    CAPTURE(name);
    CHECK(without_s < step_s);
    CHECK(term["error"].get<double>() == Approx(without_s / 0.5 - 1));
    const bool of_kernels = name == "gaps between kernels" || name == "prologues of matrix products";
    if (!of_kernels &&
        (name.ends_with(" kernels") || name.ends_with(" products") || name == "optimizer updates"))
      kernels_s += step_s - without_s;
    least_s = std::min(least_s, without_s);
  }
  CHECK(kernels_s == Approx(step_s).epsilon(1e-6));
  CHECK(alone["without"][0]["step_time_s"] == least_s);  // the largest effect comes first

  bool gradients = false;
  const json two = explained("two");
  for (const json& term : two["without"]) gradients = gradients || term["term"] == "bytes of gradient sync";
  CHECK(gradients);

  const Outcome text = run_rehearse("validate --explain alone " + csv);
  for (const char* told : {"alone\n  measured 500.0 ms, predicted ", "  Source: a paper\n  Note: a note\n",
                           "preset = \"gpt2\"", "Bottleneck: ", "\n  matrix products "})
    CHECK(text.out.find(told) != std::string::npos);
  const Outcome lines = run_rehearse("validate --format csv --explain alone " + csv);
  CHECK(lines.out.rfind("id,without,step_time_s,error\nalone,,", 0) == 0);
}
