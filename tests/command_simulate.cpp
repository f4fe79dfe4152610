#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse::test;
using nlohmann::json;
using rehearse::contains_text;

namespace {

// Two stages of 10 ms forward and 20 ms backward on two chips, with one switch without latency.
constexpr const char* kPipeline = R"([model.profiled]
stages = 2
forward_ms = 10
backward_input_ms = 12
backward_weight_ms = 8
p2p_bytes = 0

[training]
global_batch = 4
micro_batch = 1

[cluster]
nodes = 2
[cluster.node]
device = "a100-80"
devices = 1
nic_gbps = 80
[cluster.fabric]
kind = "switch"
latency_us = 0

[strategy]
pipeline = 2
schedule = "1f1b"

[simulation]
protocol = "ideal"
)";

std::string shipped(const std::string& name) {
  return std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/" + name;
}

}  // namespace

TEST_CASE("simulate gives the pipeline's closed form") {
  const Scratch scratch;
  const std::string scenario = scratch.write("pipe.toml", kPipeline);
  const Outcome run = run_rehearse("simulate " + scenario + " --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.err.empty());
  const json result = json::parse(run.out);
  // (m + p - 1)(tF + tB); p - 1 of the slots are the bubble.
  CHECK(result["step_time_s"].get<double>() == Approx((4 + 2 - 1) * 0.030).epsilon(1e-9));
  CHECK(result["breakdown_s"]["compute"].get<double>() == Approx(4 * 0.030).epsilon(1e-9));
  CHECK(result["breakdown_s"]["pipeline_bubble"].get<double>() == Approx(0.030).epsilon(1e-9));
  double sum = 0;
  for (const auto& part : result["breakdown_s"]) sum += part.get<double>();
  CHECK(sum == Approx(result["step_time_s"].get<double>()).epsilon(1e-12));
  CHECK(result["scenario"] == "pipe");
}

TEST_CASE("JSON has the keys that the commands' README defines, in their order") {
  const Scratch scratch;
  const Outcome run = run_rehearse("simulate " + scratch.write("pipe.toml", kPipeline) + " --format json");
  REQUIRE(run.status == 0);
  const auto result = nlohmann::ordered_json::parse(run.out);
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::string names;
    for (const auto& [key, value] : object.items()) names += key + " ";
    return names;
  };
  CHECK(keys(result) ==
        "scenario step_time_s samples_per_s tokens_per_s devices model_tflops_per_device mfu hfu breakdown_s "
        "critical_path memory_bytes network cost_per_step currency energy_wh_per_step carbon_g_per_step "
        "cost_needs target asynchrony engine framework rests_on notes ");
  CHECK(keys(result["breakdown_s"]) == "compute exposed_communication data_stall pipeline_bubble other ");
  CHECK(keys(result["memory_bytes"]) ==
        "weights gradients optimizer activations buffers total capacity fits reserved allocated allocator ");
  CHECK(keys(result["network"]) == "bytes_per_step busiest_link ");
  CHECK(keys(result["engine"]) == "fidelity classes events ");
  CHECK(keys(result["rests_on"]) == "measured published interpolated guessed ");
}

TEST_CASE("a step and a training are paid for as the scenario says") {
  const Scratch scratch;
  const std::string simulate = "simulate " + scratch.write("pipe.toml", kPipeline) +
                               " --set training.samples=4000 --set cost.price_per_device_hour=36";
  // Two devices at 0.01 USD per second; steps of 0.15 s train 4 samples.
  json result = json::parse(run_rehearse(simulate + " --format json").out);
  CHECK(result["cost_per_step"].get<double>() == Approx(2 * 0.01 * 0.15));
  CHECK(result["currency"] == "USD");
  CHECK(result["energy_wh_per_step"].is_null());
  CHECK(result["cost_needs"] == json{"cluster.node.host_power_w"});
  CHECK(result["target"]["steps"] == 1000);
  CHECK(result["target"]["tokens"].is_null());
  CHECK(result["target"]["seconds"].get<double>() == Approx(150));
  CHECK(result["target"]["device_hours"].get<double>() == Approx(2 * 150 / 3600.0));
  CHECK(result["target"]["cost"].get<double>() == Approx(3));
  CHECK(result["target"]["energy_kwh"].is_null());
  const std::string text = run_rehearse(simulate).out;
  CAPTURE(text);
  CHECK(text.find("  A step costs 0.00300 USD (2 GPUs at 36.0 USD an hour); energy: unknown without "
                  "cluster.node.host_power_w.\n") != std::string::npos);
  CHECK(
      text.find("  Training on 4,000 samples takes 1,000 steps, in 150.0 s: 0.0833 GPU-hours, 3.00 USD.\n") !=
      std::string::npos);

  // Sets all power figures, for a site without losses: the devices compute for 0.12 s of each 0.15 s step.
  const auto watts = [](const char* key, int value) {
    return " --set 'cluster." + std::string(key) + "={value=" + std::to_string(value) +
           ", basis=\"guess\", source=\"a test\"}'";
  };
  const std::string powered = watts("node.host_power_w", 100) + watts("node.host_idle_power_w", 50) +
                              watts("node.nic_power_w", 10) + watts("fabric.port_power_w", 5) +
                              watts("fabric.port_idle_power_w", 5);
  result = json::parse(
      run_rehearse(simulate + powered + " --set cost.pue=1 --set cost.carbon_g_per_kwh=500 --format json")
          .out);
  const double joules = 2 * (0.12 * 400 + 0.03 * 60 + 0.15 * (100 + 10 + 5));  // 400 and 60 W are the A100's
  CHECK(result["energy_wh_per_step"].get<double>() == Approx(joules / 3600));
  CHECK(result["carbon_g_per_step"].get<double>() == Approx(joules / 3600 / 2));
  CHECK(result["target"]["energy_kwh"].get<double>() == Approx(joules / 3600));
  CHECK(result["target"]["carbon_kg"].get<double>() == Approx(joules / 3600 / 2));
  CHECK_FALSE(result.contains("cost_needs"));
}

TEST_CASE("asynchronous servers: who is how fast, and how stale gradients are", "[release]") {
  CHECK(json::parse(
            run_rehearse("simulate " + shipped("resnet50-ps.toml") + " --format json").out)["asynchrony"]
            .is_null());
  const Outcome run = run_rehearse("simulate " + shipped("resnet50-ps-async.toml") + " --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json result = json::parse(run.out);
  const json& figures = result["asynchrony"];
  CHECK(figures["mode"] == "async");
  REQUIRE(figures["workers"].size() == 16);
  double sum = 0;
  for (std::size_t w = 0; w < 16; ++w) {
    CHECK(figures["workers"][w]["rank"] == w);
    sum += figures["workers"][w]["samples_per_s"].get<double>();
  }
  CHECK(result["samples_per_s"].get<double>() == Approx(sum).epsilon(1e-9));
  CHECK(result["step_time_s"].get<double>() == Approx(1024 / sum).epsilon(1e-9));
  // Device 5 runs at half speed, and almost all time is computation.
  CHECK(figures["workers"][5]["samples_per_s"].get<double>() ==
        Approx(figures["workers"][4]["samples_per_s"].get<double>() / 2).epsilon(0.05));
  double gradients = 0, updates = 0;
  int most = 0;
  for (const auto& [staleness, count] : figures["staleness"]["histogram"].items()) {
    gradients += count.get<double>();
    updates += std::stod(staleness) * count.get<double>();
    most = std::max(most, std::stoi(staleness));
  }
  CHECK(figures["staleness"]["mean"].get<double>() == Approx(updates / gradients).epsilon(1e-9));
  CHECK(figures["staleness"]["max"] == most);
  const json& phases = figures["starting_phases"];
  CHECK(phases["count"].get<int>() >= 2);
  CHECK(phases["least_s"] <= result["step_time_s"]);
  CHECK(phases["most_s"] >= result["step_time_s"]);
  // All random numbers depend on the scenario's seed.
  const std::string command = "simulate " + shipped("resnet50-ps-async.toml") +
                              " --set cluster.nodes=2 --set training.global_batch=512 --format json";
  const std::string out = run_rehearse(command).out;
  CHECK_FALSE(out.empty());
  CHECK(run_rehearse(command).out == out);
  CHECK(run_rehearse(command + " --set simulation.seed=2").out != out);
}

TEST_CASE("tokens are counted where the model has some") {
  struct Case {
    const char* scenario;
    bool tokens;
  };
  for (const Case& c : {Case{"resnet50-ring.toml", false}, Case{"mlp-ring.toml", false},
                        Case{"bert-large-ring.toml", true}}) {
    CAPTURE(c.scenario);
    const std::string command = "simulate " + shipped(c.scenario);
    const json tokens = json::parse(run_rehearse(command + " --format json").out)["tokens_per_s"];
    CHECK(tokens.is_null() != c.tokens);
    if (c.tokens) CHECK(tokens.get<double>() > 0);
    const std::string csv = run_rehearse(command + " --format csv").out;
    std::istringstream row(csv.substr(csv.find('\n') + 1));
    std::string field;
    for (int column = 0; column < 4; ++column) std::getline(row, field, ',');  // the fourth: tokens_per_s
    CHECK(field.empty() != c.tokens);
    const bool told = run_rehearse(command).out.find("tokens/s") != std::string::npos;
    CHECK(told == c.tokens);
  }
}

TEST_CASE("simulate reads standard input, overrides keys and leaves folding out") {
  const Scratch scratch;
  const std::string scenario = scratch.write("pipe.toml", kPipeline);
  const Outcome file = run_rehearse("simulate " + scenario + " --format json");
  const Outcome input = run_rehearse("simulate - --format json <" + scenario);
  REQUIRE(file.status == 0);
  REQUIRE(input.status == 0);
  CHECK(json::parse(file.out)["step_time_s"] == json::parse(input.out)["step_time_s"]);
  const Outcome more = run_rehearse("simulate " + scenario + " --format json --set training.global_batch=8");
  REQUIRE(more.status == 0);
  CHECK(json::parse(more.out)["step_time_s"].get<double>() == Approx((8 + 2 - 1) * 0.030).epsilon(1e-9));
  const Outcome two =
      run_rehearse("simulate --set cluster.nodes=8 --set training.global_batch=16 --no-fold " + scenario +
                   " --format json");
  CAPTURE(two.err);
  REQUIRE(two.status == 0);
  CHECK(json::parse(two.out)["engine"]["classes"] == 8);  // data 4 x pipeline 2, one rank per class
  const Outcome folded = run_rehearse("simulate --set cluster.nodes=8 --set training.global_batch=16 " +
                                      scenario + " --format json");
  CHECK(json::parse(folded.out)["engine"]["classes"] < 8);
  CHECK(json::parse(folded.out)["step_time_s"].get<double>() ==
        Approx(json::parse(two.out)["step_time_s"].get<double>()).epsilon(1e-9));
}

TEST_CASE("exit status and messages") {
  const Scratch scratch;
  const std::string good = scratch.write("pipe.toml", kPipeline);
  const std::string typo = scratch.write("typo.toml", std::string("[modle]\n") + kPipeline);
  struct Case {
    std::string arguments;
    int status;
    std::string told;  // part of the message
  };
  const std::vector<Case> cases = {
      {"", 2, "subcommand"},
      {"frobnicate", 2, "frobnicate"},
      {"simulate", 2, "SCENARIO"},
      {"simulate " + good + " --format xml", 2, "xml"},
      {"simulate " + typo, 2, "typo.toml:1:"},
      {"simulate " + scratch.path("none.toml"), 2, "none.toml"},
      {"simulate " + scratch.path("."), 2, "directory"},
      {"simulate " + good + " --set training.micro_batch=0", 2, "micro_batch"},
      {"simulate " + good + " --set nonsense", 2, "nonsense"},
      {"simulate " + good + " --trace " + scratch.path("none/trace.json"), 1, "trace.json"},
      {"list", 2, "WHAT"},
      {"list cars", 2, "cars"},
      {"show gpt3-175", 2, "did you mean \"gpt3-175b\""},
      {"validate zero-bubble-1f1", 2, "did you mean \"zero-bubble-1f1b\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.arguments);
    const Outcome run = run_rehearse(c.arguments);
    CAPTURE(run.err);
    CHECK(run.status == c.status);
    CHECK(run.out.empty());
    CHECK(run.err.find(c.told) != std::string::npos);
  }
  CHECK(run_rehearse("--version").out == "rehearse 0.2.0\n");
  CHECK(run_rehearse("--help").status == 0);
}

TEST_CASE("output that cannot be written is an error, unless its reader has gone") {
  const Scratch scratch;
  const std::string scenario = scratch.write("pipe.toml", kPipeline);
  if (std::filesystem::exists("/dev/full")) {
    const Outcome full = run_rehearse("simulate " + scenario + " >/dev/full");
    CHECK(full.status == 1);
    CHECK(full.err.find("cannot be written") != std::string::npos);
  }
  // The reader exits before the program writes; `status` receives the program's exit status.
  const std::string status = scratch.path("status");
  run_rehearse("simulate " + scenario, "( sleep 0.2; ", "; echo $? >" + status + " ) | true");
  CHECK(read_file(status) == "0\n");
}

TEST_CASE("the timeline of a real run: spans in order, arrows in pairs, links as busy as the result says") {
  const Scratch scratch;
  const std::string path = scratch.path("trace.json");
  for (const std::string name : {"resnet50-ring", "resnet50-ps"}) {
    CAPTURE(name);
    REQUIRE(run_rehearse("simulate " + shipped(name + ".toml") + " --trace " + path).status == 0);
    const json trace = json::parse(read_file(path));
    const json& result = trace["otherData"]["result"];
    const json& link = result["network"]["busiest_link"];
    std::map<std::pair<int, int>, double> thread_end;
    std::map<long, std::string> arrows;
    int steps = 0;
    double bytes = 0, rate = 0, since_us = 0;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "X") {
        double& end = thread_end[{event["pid"], event["tid"]}];
        CHECK(event["ts"].get<double>() >= end - 1e-4);  // a tenth of a nanosecond: sums of decimal fractions
        end = event["ts"].get<double>() + event["dur"].get<double>();
        steps = std::max(steps, event["args"]["step"].get<int>() + 1);
      } else if (event["ph"] == "s" || event["ph"] == "f") {
        arrows[event["id"]] += event["ph"].get<std::string>();
      } else if (event["ph"] == "C" && event["name"] == link["name"]) {
        bytes += rate * (event["ts"].get<double>() - since_us) * 1e-6;
        rate = event["args"]["bytes_per_s"];
        since_us = event["ts"];
      }
    }
    for (const auto& [id, phases] : arrows) CHECK(phases == "sf");
    CHECK(arrows.empty() == (name == "resnet50-ring"));  // collectives have no arrows
    // Both busiest links are Ethernet of 25 Gb/s.
    const double step_s = result["step_time_s"];
    CHECK(bytes == Approx(link["utilization"].get<double>() * 25e9 / 8 * step_s * steps).epsilon(1e-6));
  }
}

// Kernels of a small model on many devices are short, so that what a framework's process takes shows.
TEST_CASE("an answer names the framework that it counts, or what one that fits would change") {
  const Scratch scratch;
  const std::string text =
      "[model.transformer]\nlayers = 4\nhidden = 512\nheads = 8\nvocabulary = 8192\nsequence_length = 512\n"
      "[training]\nglobal_batch = 16\nprecision = \"bf16\"\n[cluster]\npreset = \"dgx-a100\"\n[strategy]\n";
  const std::string named = scratch.write("named.toml", text + "preset = \"megatron-ddp\"\n"),
                    open = scratch.write("open.toml", text + "data = 8\n");
  const auto answer = [](const std::string& arguments) {
    const Outcome run = run_rehearse("simulate --format json " + arguments);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out);
  };
  const auto notes = [](const json& said, const std::string& part) {
    return std::count_if(said["notes"].begin(), said["notes"].end(), [&](const json& note) {
      return note.get<std::string>().find(part) != std::string::npos;
    });
  };
  const json taken = answer(named);
  CHECK(taken["framework"] == "megatron-2022");
  CHECK(notes(taken, "training.framework = \"none\" leaves them out") == 1);
  const json none = answer(named + " --set training.framework=none");
  CHECK(none["framework"] == "none");
  CHECK(notes(none, "framework") == 0);
  CHECK(none["step_time_s"].get<double>() < taken["step_time_s"].get<double>());

  // The note gives the factor that the command it names gives.
  const json told = answer(open);
  CHECK(told["framework"] == "none");
  REQUIRE(notes(told, "No framework's costs are counted: with --set training.framework=") == 1);
  for (const json& note : told["notes"]) {
    const std::string said = note.get<std::string>();
    const std::size_t at = said.find("training.framework=");
    if (at == std::string::npos) continue;
    const std::string assignment = said.substr(at, said.find(' ', at) - at);
    const json with = answer(open + " --set " + assignment);
    CHECK(notes(with, "No framework's costs") == 0);
    const double factor = with["step_time_s"].get<double>() / told["step_time_s"].get<double>();
    const std::string shown = said.substr(said.find("takes ") + 6);
    CHECK(std::stod(shown) == Approx(factor).margin(0.0051));
  }
  CHECK(notes(answer(open + " --set simulation.protocol=ideal"), "framework") == 0);
}

TEST_CASE("shipped scenarios give the answers of the golden files", "[release]") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(shipped(""))) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Outcome run = run_rehearse("simulate " + shipped(name + ".toml"));
    CAPTURE(run.err);
    CHECK(run.status == 0);
    CHECK(run.err.empty());
    check_golden("scenario-" + name + ".txt", run.out);
    // The output fits on one screen.
    std::istringstream lines(run.out);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      CHECK(columns <= 120);
    }
    CHECK(count <= 24);
  }
}

TEST_CASE("advice is told in text, and in JSON only if it is asked for") {
  const std::string scenario = "simulate " + shipped_scenario("small-gpt");
  CHECK_THAT(run_rehearse(scenario).out, contains_text("less time per sample"));
  CHECK_THAT(run_rehearse(scenario + " --advice never").out, !contains_text("less time per sample"));
  CHECK(!json::parse(run_rehearse(scenario + " --format json").out).contains("remedies"));
  const json result = json::parse(run_rehearse(scenario + " --format json --advice always").out);
  REQUIRE(!result["remedies"].empty());
  for (const json& remedy : result["remedies"]) {
    std::string sets;
    for (const json& set : remedy["sets"]) sets += " --set '" + set.get<std::string>() + "'";
    CAPTURE(sets);
    const json changed = json::parse(run_rehearse(scenario + " --format json" + sets).out);
    CHECK(changed["step_time_s"].get<double>() == remedy["step_time_s"].get<double>());
    CHECK(changed["memory_bytes"]["total"] == remedy["memory_bytes"]);
    CHECK(1 - result["samples_per_s"].get<double>() / changed["samples_per_s"].get<double>() ==
          Approx(remedy["gain"].get<double>()));
  }
}

namespace {

// Returns the advice for Llama 2 7B with these further keys of [training], [cluster] and [strategy].
json advice_for_llama(const std::string& rest) {
  const Scratch scratch;
  const std::string job = scratch.write(
      "job.toml", "[model]\npreset = \"llama2-7b\"\n[training]\nglobal_batch = 64\nmicro_batch = 1\n" + rest);
  const Outcome run = run_rehearse("simulate " + job + " --format json --advice always");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out)["remedies"];
}

}  // namespace

TEST_CASE("a job that recomputes without need is told so") {
  const json advice = advice_for_llama(
      "recompute = \"full\"\n[cluster]\npreset = \"dgx-h100\"\nnodes = 1\n"
      "[strategy]\npreset = \"megatron-core\"\ntensor = 8\n");
  bool told = false;
  for (const json& remedy : advice) told |= remedy.dump().find("recompute=none") != std::string::npos;
  CHECK(told);
}

// DeepSpeed's ZeRO-3 has no pipeline.
TEST_CASE("advice uses nothing that a named strategy lacks") {
  const json advice = advice_for_llama(
      "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 8\n[cluster.node]\ndevice = \"a100-80\"\n"
      "[strategy]\npreset = \"deepspeed-zero-3\"\n");
  for (const json& remedy : advice) {
    CAPTURE(remedy.dump());
    for (const json& set : remedy["sets"]) {
      CHECK(!set.get<std::string>().starts_with("strategy.pipeline"));
      CHECK(!set.get<std::string>().starts_with("strategy.tensor"));
    }
  }
}

TEST_CASE("full recomputation of a model without recomputable layers is simulated") {
  const Outcome run =
      run_rehearse("simulate " + shipped_scenario("mlp-ring") + " --set training.recompute=full");
  CAPTURE(run.err);
  CHECK(run.status == 0);
}
