// Tests that recorded runs are written, read back and validated. The "measured" traces are predicted ones,
// stretched by factors from which the expected errors follow.
#include <fmt/format.h>
#include <cmath>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/text/error.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/trace/op_seconds.hpp"
#include "tests/command_run.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

namespace {

// Four identical data-parallel ranks that compute and then all-reduce: nothing overlaps.
constexpr const char* kOneAfterTheOther = R"([model.multi_layer_perceptron]
widths = [2048, 2048, 2048, 2048]
[training]
global_batch = 256
micro_batch = 64
precision = "fp32"
optimizer = "sgd"
[cluster]
nodes = 4
[cluster.node]
device = "a100-80"
devices = 1
nic_gbps = 40
[cluster.fabric]
kind = "switch"
latency_us = 5
[strategy]
overlap = false
bucket_mb = 1000
[simulation]
protocol = "ideal"
steps = 5
)";

RecordedRun predicted(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Prediction prediction = predict(read_scenario_text(text, "job.toml", overrides), Where::child);
  Measurement measurement;
  measurement.executor = "host";
  measurement.transport = "TCP";
  measurement.processor = "Example CPU";
  measurement.cores = 2;
  measurement.versions = {{"rehearse-run", "1.0"}};
  measurement.date = "2025-11-21T10:00:00Z";
  measurement.command = "mpirun -n 4 rehearse-run run job.toml";
  measurement.warmup_steps = 1;
  measurement.losses = {2.5, 2.25, 2, 1.75, 1.5};
  measurement.gradients_identical = true;
  measurement.notes = {"4 ranks on 2 cores."};
  RecordedRun run{prediction.scenario, prediction.plan, prediction.trace, measurement};
  run.trace.link_use.clear();  // executors do not count bytes on links
  run.trace.bytes_total = 0;
  run.trace.spans.latency_s.clear();
  return run;
}

// Stretches time by `factor`, which is constant within the span that runs at an instant. Valid if all ranks
// do the same at the same time.
void stretch(Trace& trace, const std::function<double(int step, const Op*)>& factor) {
  std::map<double, std::pair<int, const Op*>> under_way;  // by the start of the span
  Spans& spans = trace.spans;
  for (std::size_t row = 0; row < spans.size(); ++row)
    if (spans.end_s[row] > spans.begin_s[row])
      under_way[spans.begin_s[row]] = {spans.step[row], &trace.op_of(row)};
  const auto warped = [&](double time_s) {
    double warped_s = 0;
    for (auto it = under_way.begin(); it != under_way.end() && it->first < time_s; ++it) {
      const auto next = std::next(it);
      const double end_s = next == under_way.end() ? time_s : std::min(time_s, next->first);
      warped_s += (end_s - it->first) * factor(it->second.first, it->second.second);
    }
    return warped_s;
  };
  for (auto* column : {&spans.ready_s, &spans.begin_s, &spans.end_s})
    for (double& time_s : *column) time_s = warped(time_s);
  trace.end_s = warped(trace.end_s);
}

bool same_nanosecond(double a, double b) {
  return std::llround(a * 1e9) == std::llround(b * 1e9);
}

void check_same(const Trace& found, const Trace& expected) {
  REQUIRE(found.spans.size() == expected.spans.size());
  CHECK(found.spans.rank_class == expected.spans.rank_class);
  CHECK(found.spans.phase == expected.spans.phase);
  CHECK(found.spans.step == expected.spans.step);
  CHECK(found.spans.op == expected.spans.op);
  CHECK(found.spans.iteration == expected.spans.iteration);
  CHECK(found.spans.sender == expected.spans.sender);
  CHECK(found.spans.status == expected.spans.status);
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_nanosecond);
  };
  CHECK(same(found.spans.ready_s, expected.spans.ready_s));
  CHECK(same(found.spans.begin_s, expected.spans.begin_s));
  CHECK(same(found.spans.end_s, expected.spans.end_s));
  CHECK(same(found.spans.latency_s, expected.spans.latency_s));
  CHECK(same_nanosecond(found.end_s, expected.end_s));
  CHECK(found.bytes_total == expected.bytes_total);
  REQUIRE(found.classes.size() == expected.classes.size());
  for (std::size_t c = 0; c < found.classes.size(); ++c) {
    CHECK(found.classes[c].role == expected.classes[c].role);
    CHECK(found.classes[c].phase_program == expected.classes[c].phase_program);
    CHECK(found.classes[c].ranks == expected.classes[c].ranks);
  }
  REQUIRE(found.link_use.size() == expected.link_use.size());
  for (std::size_t i = 0; i < found.link_use.size(); ++i) {
    CHECK(found.link_use[i].link == expected.link_use[i].link);
    CHECK(found.link_use[i].members == expected.link_use[i].members);
    CHECK(found.link_use[i].bytes == expected.link_use[i].bytes);
  }
  CHECK(found.run.jobs[0].phases[0].repeats == expected.run.jobs[0].phases[0].repeats);
  CHECK(found.engine.fidelity == expected.engine.fidelity);
  CHECK(found.engine.events == expected.engine.events);
}

double figure(const json& run, const std::string& name, const std::string& key) {
  for (const json& op : run["ops"])
    if (op["name"] == name) return op[key].get<double>();
  FAIL("no op " << name);
  return 0;
}

}  // namespace

TEST_CASE("a written trace is read again, of every strategy") {
  const std::string scenarios = std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/";
  const Scratch scratch;
  std::vector<std::pair<std::string, std::vector<std::string>>> cases;
  // Left out: 100,000 spans or more; under sanitizers, most of the shipped scenarios have too many.
  const std::set<std::string> large = {"gpt3-175b", "llama3-405b"};
  for (const auto& entry : std::filesystem::directory_iterator(scenarios))
    if (large.count(entry.path().stem()) == 0) cases.push_back({entry.path().string(), {}});
  REQUIRE(cases.size() >= 9);
  if (testing::kSanitized) cases.clear();
  const std::string ring = scenarios + "resnet50-ring.toml", servers = scenarios + "resnet50-ps.toml";
  for (const char* all_reduce : {"tree", "halving-doubling", "recursive-doubling", "hierarchical"})
    cases.push_back({ring, {fmt::format("strategy.all_reduce={}", all_reduce), "simulation.fold=false"}});
  cases.push_back({ring, {"simulation.fidelity=chunk", "cluster.nodes=2"}});
  for (const char* mode :
       {"async", "stale-synchronous"})  // their predictions are means of several simulations
    if (!testing::kSanitized)
      cases.push_back({servers, {fmt::format("strategy.parameter_server.mode={}", mode), "cluster.nodes=2"}});
  cases.push_back({servers,
                   {"strategy.gradients=hierarchical-parameter-server",
                    "strategy.hierarchical_parameter_server.placement=colocated"}});
  for (const auto& [path, overrides] : cases) {
    CAPTURE(path, overrides);
    std::optional<Scenario> scenario;
    try {
      scenario = read_scenario_file(path, overrides);
    } catch (const InputError& error) {
      FAIL(error.what());
    }
    const Prediction prediction = predict(*scenario, Where::child);
    const std::string written = scratch.path("trace.json.gz"), again = scratch.path("again.json.gz");
    write_chrome_trace(prediction.result(), written);
    const RecordedRun read = read_run(written);
    CHECK_FALSE(read.measured);
    check_same(read.trace, prediction.trace);
    CHECK(read.scenario.name == prediction.scenario.name);
    CHECK(read.scenario.text == prediction.scenario.text);
    CHECK(read.scenario.strategy.title == prediction.scenario.strategy.title);
    // A second round trip changes nothing, because times in the file are whole nanoseconds.
    const Metrics metrics = evaluate(read.trace, read.scenario, read.plan);
    // For asynchronous workers, a prediction is a mean over several simulations, and its trace is one of
    // these.
    const Metrics of_trace = evaluate(prediction.trace, prediction.scenario, prediction.plan);
    CHECK(metrics.step_time_s == Approx(of_trace.step_time_s).epsilon(1e-6));
    write_chrome_trace({read.scenario, read.plan, read.trace, metrics, {}, {}}, again);
    const RecordedRun read_again = read_run(again);
    check_same(read_again.trace, read.trace);
    CHECK(read_again.trace.spans.end_s == read.trace.spans.end_s);
  }
}

TEST_CASE("a measured run says how it was measured, and its figures are those of its median step") {
  const Scratch scratch;
  RecordedRun run = predicted(kOneAfterTheOther);
  const double step_s = run.trace.end_s / 5;
  const std::vector<double> factors = {7, 1, 3, 2, 4};  // the first step is warm-up
  stretch(run.trace, [&](int step, const Op*) { return factors[step]; });
  const std::string path = scratch.path("run.json");
  write_run(run, path);
  const RecordedRun read = read_run(path);
  check_same(read.trace, run.trace);
  REQUIRE(read.measured);
  const Measurement &found = *read.measured, &expected = *run.measured;
  CHECK(found.executor == expected.executor);
  CHECK(found.transport == expected.transport);
  CHECK(found.processor == expected.processor);
  CHECK(found.cores == expected.cores);
  CHECK(found.hosts == expected.hosts);
  CHECK(found.versions == expected.versions);
  CHECK(found.date == expected.date);
  CHECK(found.command == expected.command);
  CHECK(found.compute == expected.compute);
  CHECK(found.warmup_steps == expected.warmup_steps);
  CHECK(found.losses == expected.losses);
  CHECK(found.gradients_identical == expected.gradients_identical);
  CHECK(found.notes == expected.notes);

  const json file = json::parse(read_file(path));
  const json& times = file["otherData"]["measured"]["step_times"];
  // Steps of 1, 3, 2 and 4 times the prediction: the median step is the faster of the two in the middle, 2.
  CHECK(times["steps"] == 4);
  CHECK(times["median_s"].get<double>() == Approx(2 * step_s));
  CHECK(times["least_s"].get<double>() == Approx(step_s));
  CHECK(times["lower_quartile_s"].get<double>() == Approx(1.75 * step_s));
  CHECK(times["upper_quartile_s"].get<double>() == Approx(3.25 * step_s));
  CHECK(times["most_s"].get<double>() == Approx(4 * step_s));
  const json& result = file["otherData"]["result"];
  CHECK(result["step_time_s"].get<double>() == Approx(2 * step_s));
  double parts_s = 0;
  for (const auto& part : result["breakdown_s"].items()) parts_s += part.value().get<double>();
  CHECK(parts_s == Approx(2 * step_s));
  CHECK_FALSE(result.contains("rests_on"));
  CHECK_FALSE(result.contains("engine"));
  // The critical path is marked on spans of the median step, number 3.
  int critical = 0;
  for (const json& event : file["traceEvents"])
    if (event["ph"] == "X" && event["args"].contains("critical")) {
      ++critical;
      CHECK(event["args"]["step"] == 3);
    }
  CHECK(critical >= 2);
}

TEST_CASE("a run holds the files that its scenario points to") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("parts"));
  scratch.write("parts/net.toml", "title = \"Net\"\n[multi_layer_perceptron]\nwidths = [64, 64, 64]\n");
  scratch.write("parts/chip.toml", R"(title = "Chip"
[peak_tflops]
fp32 = { value = 1.5, basis = "measured", source = "here" }
[memory_gib]
value = 16
basis = "guess"
source = "none"
[memory_gb_per_s]
value = 100
basis = "guess"
source = "none"
)");
  scratch.write("parts/lab.toml", R"(title = "Lab"
nodes = 3
sources = ["a cable"]
basis = "measured"
[node]
device_file = "chip.toml"
devices = 1
nic_gbps = 1
[fabric]
kind = "switch"
latency_us = 20
)");
  scratch.write(
      "parts/config.json",
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 32})");
  scratch.write("parts/links.toml", R"(title = "Links"
date = "2026-11-21"
hardware = "none"
versions = "none"
[[message]]
where = "between-nodes"
range = [{from_bytes = 0, latency_us = {value = 20, low = 18, high = 25}, gb_per_s = {value = 0.5}}]
)");
  for (const std::string model : {"file = \"parts/net.toml\"", "huggingface = \"parts/config.json\""}) {
    CAPTURE(model);
    const std::string job = scratch.write(
        "job.toml", "[model]\n" + model +
                        "\n[training]\nglobal_batch = 8\n[cluster]\nfile = \"parts/lab.toml\"\n"
                        "nodes = 2\nnic_gbps = 2\n[[cluster.slow]]\ndevice = 1\nfactor = "
                        "0.5\n[simulation]\nprotocol = \"measured\"\nlink_profile = \"parts/links.toml\"\n");
    const Scenario scenario = read_scenario_file(job, {"training.micro_batch=2"});
    const Scenario again = read_scenario_text(scenario.text, "elsewhere/job.toml");
    CHECK(again.text == scenario.text);
    CHECK(scenario.text.find("parts/") == std::string::npos);
    CHECK(again.model.name == scenario.model.name);
    CHECK(again.model.title == scenario.model.title);
    CHECK(parameter_count(again.model) == parameter_count(scenario.model));
    CHECK(flops_per_sample(again.model, 0) == flops_per_sample(scenario.model, 0));
    CHECK(again.cluster->name == "lab, but for nic_gbps");
    CHECK(again.cluster->title == scenario.cluster->title);
    CHECK(again.cluster->sources == scenario.cluster->sources);
    CHECK(again.cluster->node().device.name == "chip");
    CHECK(again.cluster->node().device.title == "Chip");
    CHECK(again.training.micro_batch == 2);
    const double step_s = predict(scenario, Where::child).metrics.step_time_s;
    CHECK(predict(again, Where::child).metrics.step_time_s == step_s);
  }
}

TEST_CASE("validate judges a run in which computing takes longer: the golden answers") {
  const Scratch scratch;
  RecordedRun run = predicted(kOneAfterTheOther);
  std::map<OpKind, double> seconds;  // of one step, summed by hand
  for (std::size_t row = 0; row < run.trace.spans.size(); ++row)
    if (run.trace.spans.step[row] == 4 && run.trace.spans.rank_class[row] == 0)
      seconds[run.trace.op_of(row).kind] += run.trace.spans.end_s[row] - run.trace.spans.begin_s[row];
  const double compute_s = seconds[OpKind::compute], sync_s = seconds[OpKind::collective];
  REQUIRE(compute_s + sync_s == Approx(run.trace.end_s / 5));
  stretch(run.trace, [](int, const Op* op) { return op->kind == OpKind::compute ? 1.25 : 1.0; });
  const std::string path = scratch.path("slow-compute.json.gz");
  write_run(run, path);

  const Outcome outcome = run_rehearse("validate " + path + " --format json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  const json answer = json::parse(outcome.out)[0], &judged = answer["runs"][0];
  // Times in the file are whole nanoseconds, in steps of milliseconds.
  const auto near = [](double value) { return Approx(value).epsilon(1e-5); };
  CHECK(judged["predicted_step_s"].get<double>() == near(compute_s + sync_s));
  CHECK(judged["measured_step_s"].get<double>() == near(1.25 * compute_s + sync_s));
  CHECK(judged["error"].get<double>() ==
        Approx((compute_s + sync_s) / (1.25 * compute_s + sync_s) - 1).margin(1e-5));
  CHECK(figure(judged, "forward", "error") == Approx(1 / 1.25 - 1).margin(1e-4));
  CHECK(figure(judged, "backward", "error") == Approx(1 / 1.25 - 1).margin(1e-4));
  CHECK(figure(judged, "gradient sync", "error") == Approx(0).margin(1e-4));
  CHECK(judged["overlap"]["measured"].get<double>() == Approx(0).margin(1e-5));
  CHECK(judged["breakdown_s"]["compute"]["measured"].get<double>() == near(1.25 * compute_s));
  CHECK(judged["breakdown_s"]["compute"]["predicted"].get<double>() == near(compute_s));
  CHECK(answer["median_absolute_error"].get<double>() == Approx(std::abs(judged["error"].get<double>())));
  const std::string sentence = judged["sentence"];
  CHECK(sentence.find("The measured step is ") == 0);
  CHECK(sentence.find("compute (it runs at 0.800 x the rate)") != std::string::npos);
  CHECK(sentence.find("gradient sync") == std::string::npos);

  for (const std::string format : {"text", "json", "csv"})
    check_golden("validate-run." + (format == "text" ? "txt" : format),
                 run_rehearse("validate " + path + " --format " + format).out);
}

TEST_CASE("validate judges a folder: the table, the errors and the order") {
  const Scratch scratch;
  struct Case {
    std::string name;
    std::vector<std::string> overrides;
    double factor;
  };
  // A parameter server takes longer than a ring. The tree is measured as faster than the ring, but predicted
  // as slower. The second ring is a repeat, and the other model is a separate group.
  const std::vector<Case> cases = {
      {"a-ring", {}, 1.0},
      {"b-ring-again", {}, 1.02},
      {"c-tree", {"strategy.all_reduce=tree"}, 0.5},
      {"d-server", {"strategy.gradients=parameter-server"}, 1.1},
      {"e-wider", {"model.multi_layer_perceptron.widths=[4096, 4096, 4096]"}, 1.0},
  };
  for (const Case& c : cases) {
    RecordedRun run = predicted(kOneAfterTheOther, c.overrides);
    for (auto* column : {&run.trace.spans.ready_s, &run.trace.spans.begin_s, &run.trace.spans.end_s})
      for (double& time_s : *column) time_s *= c.factor;
    run.trace.end_s *= c.factor;
    write_run(run, scratch.path(c.name + ".json.gz"));
  }
  scratch.write("README.txt", "what is no run is left alone");
  const std::string folder = scratch.path("");
  const Outcome outcome = run_rehearse("validate " + folder + " --format json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  const json answer = json::parse(outcome.out)[0];
  REQUIRE(answer["runs"].size() == cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].name);
    CHECK(answer["runs"][i]["run"] == cases[i].name);
    CHECK(answer["runs"][i]["error"].get<double>() == Approx(1 / cases[i].factor - 1).margin(1e-5));
  }
  // Sorted errors: 0, 0, 0.0196, 0.0909, 1
  CHECK(answer["median_absolute_error"].get<double>() == Approx(1 - 1 / 1.02).margin(1e-5));
  CHECK(answer["worst_error"].get<double>() == Approx(1).margin(1e-5));
  // Compares all pairs of a to d except the two rings; both rings against the tree are wrong.
  CHECK(answer["order"]["comparisons"] == 5);
  CHECK(answer["order"]["right"] == 3);
  CHECK(answer["order"]["wrong"] == json::array({{{"faster", "c-tree"}, {"slower", "a-ring"}},
                                                 {{"faster", "c-tree"}, {"slower", "b-ring-again"}}}));
  for (const std::string format : {"text", "csv"})
    check_golden("validate-runs." + (format == "text" ? "txt" : format),
                 run_rehearse("validate " + folder + " --format " + format).out);

  // Overrides only change the prediction: with ten times the bandwidth it is far too fast.
  const json faster = json::parse(
      run_rehearse("validate " + folder + "a-ring.json.gz --set cluster.nic_gbps=400 --format json").out)[0];
  CHECK(faster["runs"][0]["measured_step_s"] == answer["runs"][0]["measured_step_s"]);
  CHECK(faster["runs"][0]["error"].get<double>() < -0.3);
}

TEST_CASE("steps of recorded real loaders are predicted within 5 %, in their order") {
  const Outcome outcome =
      run_program("rehearse", "validate " REHEARSE_TESTS_DIR "/../benchmarks/recorded/loading --format json");
  REQUIRE(outcome.status == 0);
  const nlohmann::json all = nlohmann::json::parse(outcome.out).back();
  CHECK(std::abs(all["worst_error"].get<double>()) < 0.05);
  CHECK(all["median_absolute_error"].get<double>() < 0.03);
  CHECK(all["order"]["comparisons"].get<int>() >= 14);
  CHECK(all["order"]["right"] == all["order"]["comparisons"]);
}

TEST_CASE("validate refuses what is no recorded run") {
  const Scratch scratch;
  const std::string scenario = scratch.write("job.toml", kOneAfterTheOther),
                    trace = scratch.path("trace.json");
  REQUIRE(run_rehearse("simulate " + scenario + " --trace " + trace).status == 0);
  RecordedRun run = predicted(kOneAfterTheOther);
  run.measured->warmup_steps = 4;
  write_run(run, scratch.path("run.json.gz"));
  const std::string whole = read_file(scratch.path("run.json.gz"));
  std::filesystem::create_directory(scratch.path("empty"));
  struct Case {
    std::string argument, told;
  };
  for (const Case& c : std::vector<Case>{
           {trace, "trace.json: is a prediction, not a recorded run: otherData.measured is missing"},
           {scratch.path("nowhere.json"), "nowhere.json: there is no such file"},
           {scratch.path("empty"), "empty: contains no recorded run"},
           {scratch.write("cut.json.gz", whole.substr(0, whole.size() / 2)),
            "cut.json.gz: ends in the middle of its gzip data"},
           {scratch.write("other.json.gz", whole.substr(0, 200) + "xxxxxxxx" + whole.substr(208)),
            "other.json.gz: its gzip data is damaged"},
           {scratch.path("run.json.gz") + " zero-bubble-1f1b --format csv", "only one of the two kinds"},
           {scratch.path("run.json.gz") + " --set training.micro_batch=7",
            "training.global_batch is 256; allowed: a multiple of micro_batch 7"}}) {
    CAPTURE(c.argument);
    const Outcome outcome = run_rehearse("validate " + c.argument);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CAPTURE(outcome.err);
    CHECK(outcome.err.find(c.told) != std::string::npos);
  }
}
