#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

// Rounds all numbers, because library versions differ in the last digits.
std::string rounded(const std::string& text) {
  static const std::regex number("-?[0-9]+\\.[0-9]+(e[-+]?[0-9]+)?|-?[0-9]+e[-+]?[0-9]+");
  std::string out;
  std::size_t end = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), number), last; it != last; ++it) {
    const double value = std::strtod(it->str().c_str(), nullptr);
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", std::abs(value) < 1e-12 ? 0 : value);
    out.append(text, end, static_cast<std::size_t>(it->position()) - end);
    out += digits;
    end = static_cast<std::size_t>(it->position() + it->length());
  }
  return out.append(text, end);
}

}  // namespace

TEST_CASE("compare gives the answers of the golden files") {
  const std::string arguments = "compare " + shipped_scenario("bert-large-ring") + " " +
                                shipped_scenario("bert-large-ps") +
                                " --variant 'strategy.overlap=false cluster.nic_gbps=50'"
                                " --variant 'training.micro_batch=32 training.global_batch=1024'";
  for (const std::string format : {"text", "json", "csv"}) {
    CAPTURE(format);
    const Outcome run = run_rehearse(arguments + " --format " + format);
    CHECK(run.status == 0);
    CHECK(run.err.empty());
    check_golden("compare." + (format == "text" ? std::string("txt") : format),
                 format == "text" ? run.out : rounded(run.out));
  }
  const Outcome text = run_rehearse(arguments);
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 112);
}

TEST_CASE("asynchronous servers are compared by the bytes of one step, not of all their rounds") {
  // Compares a ring all-reduce with a single server, whose NIC carries the gradients of all workers. Both use
  // links of the same bandwidth.
  const Outcome run = run_rehearse("compare " + shipped_scenario("resnet50-ring") +
                                   " --set cluster.nic_gbps=2 --set cluster.nodes=2"
                                   " --set training.global_batch=512 --set simulation.protocol=ideal"
                                   " --variant 'strategy.gradients=parameter-server"
                                   " strategy.parameter_server.mode=async' --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json all = json::parse(run.out);
  const auto busiest_bytes = [](const json& result) {  // divided by the bandwidth, which is the same in both
    return result["network"]["busiest_link"]["utilization"].get<double>() *
           result["step_time_s"].get<double>();
  };
  const std::string sentence = all[1]["comparison"]["sentence"];
  CAPTURE(sentence);
  std::smatch told;
  REQUIRE(std::regex_search(sentence, told, std::regex("carries ([0-9.]+) x the bytes")));
  CHECK(std::stod(told[1]) == Approx(busiest_bytes(all[1]) / busiest_bytes(all[0])).epsilon(0.005));
}

TEST_CASE("the bytes of a step do not depend on whether servers wait", "[release]") {
  const Outcome run = run_rehearse("compare " + shipped_scenario("resnet50-ps-async") +
                                   " --variant strategy.parameter_server.mode=sync --format json"
                                   " --set cluster.nodes=2 --set training.global_batch=512");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json all = json::parse(run.out);
  CHECK(all[0]["network"]["bytes_per_step"].get<double>() ==
        Approx(all[1]["network"]["bytes_per_step"].get<double>()).epsilon(1e-9));
}

TEST_CASE("differences and ratios are to the base") {
  const Outcome run =
      run_rehearse("compare " + shipped_scenario("resnet50-ring") + " " + shipped_scenario("resnet50-ps") +
                   " --format json --set cluster.nic_gbps=5");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json all = json::parse(run.out);
  REQUIRE(all.size() == 2);
  CHECK(all[0]["comparison"].is_null());
  const json& comparison = all[1]["comparison"];
  CHECK(comparison["base"] == "resnet50-ring");
  CHECK(comparison["per_sample"] == false);
  const double was = all[0]["step_time_s"], is = all[1]["step_time_s"];
  CHECK(comparison["differences"]["step_time_s"]["difference"].get<double>() == Approx(is - was));
  CHECK(comparison["differences"]["step_time_s"]["ratio"].get<double>() == Approx(is / was));
  // The parts of the difference add up to the total difference.
  double sum = 0;
  for (const std::string part :
       {"compute_s", "pipeline_bubble_s", "exposed_gradient_sync_s", "data_stall_s", "other_s"})
    sum += comparison["differences"][part]["difference"].get<double>();
  CHECK(sum == Approx(is - was).epsilon(1e-9));
  CHECK(comparison["settings"][0] ==
        json({{"key", "strategy.gradients"}, {"base", "all-reduce"}, {"this", "parameter-server"}}));
  // The results are the same JSON objects as simulate's.
  json alone = json::parse(
      run_rehearse("simulate " + shipped_scenario("resnet50-ps") + " --format json --set cluster.nic_gbps=5")
          .out);
  json beside = all[1];
  beside.erase("comparison");
  CHECK(beside == alone);
}

TEST_CASE("steps of different numbers of samples are compared per sample") {
  const Scratch scratch;
  const std::string scenario = scratch.write("pipe.toml", kMeasuredStages);
  const Outcome run =
      run_rehearse("compare " + scenario + " --variant training.global_batch=32 --format json");
  REQUIRE(run.status == 0);
  const json all = json::parse(run.out);
  const json& comparison = all[1]["comparison"];
  CHECK(comparison["per_sample"] == true);
  CHECK(comparison["differences"]["step_time_s"]["ratio"].get<double>() ==
        Approx(all[1]["step_time_s"].get<double>() / 32 / (all[0]["step_time_s"].get<double>() / 16)));
  CHECK(comparison["sentence"].get<std::string>().find("per sample (a step trains 32 instead of 16)") !=
        std::string::npos);
}

TEST_CASE("the sentence names the cause of a difference") {
  const Scratch scratch;
  const std::string pipeline = scratch.write("pipe.toml", kMeasuredStages);
  const std::string ring = shipped_scenario("bert-large-ring");
  struct Case {
    std::string base, variant;
    std::vector<std::string> told;
  };
  const std::vector<Case> cases = {
      {ring, "simulation.seed=5", {"takes as long as", "compute equal."}},
      {ring,
       "cluster.nic_gbps=2",
       {"x slower: +",
        "ms exposed gradient sync (the busiest link, node0.nic0.out, has 250 MB/s instead of 25 GB/s)"}},
      {ring,
       "strategy.gradients=parameter-server strategy.parameter_server.servers=4",
       {"exposed gradient sync (the busiest link, ", " x the bytes", "servers update the weights"}},
      {ring, "strategy.overlap=false", {"nothing of it overlaps with the backward pass"}},
      {ring, "cluster.latency_us=5000", {"startup and latency, 1.68 s on the critical path"}},
      {ring, "training.recompute=full", {"ms compute (activations are recomputed)"}},
      {ring, "training.micro_batch=2", {"the rate: micro-batches of 2 instead of 16"}},
      {ring, "training.precision=fp32", {"the rate: fp32"}},
      {ring, "cluster.preset=dgx-h100", {"x faster: -", "the rate: NVIDIA H100"}},
      {ring, "cluster.nodes=2", {"16 instead of 32 devices share the work; each does 2.00 x the arithmetic"}},
      {ring,
       "cluster.slow=[{device=3, factor=0.5}]",
       {"waiting for slower ranks (node0.gpu3 runs at 50.0 % of its speed)"}},
      {ring, "training.micro_batch=256 training.global_batch=8192", {"does not fit: ", " of 80.0 GiB."}},
      {pipeline,
       "training.global_batch=32",
       {"ms pipeline bubble (3 of 19 slots are idle instead of 3 of 11)"}},
      {pipeline, "strategy.pipeline=4 strategy.blocking_p2p=true", {"transfers hold up computation"}},
      {pipeline, "strategy.schedule=gpipe", {"the schedule is gpipe instead of 1f1b"}},
      {pipeline, "cluster.nic_gbps=8", {"has 1 GB/s instead of 10 GB/s", "stages wait longer for transfers"}},
      {pipeline,
       "cluster.slow=[{device=2,factor=0.5}]",
       {"ms pipeline bubble (node2.gpu0 runs at 50.0 % of its speed)"}},
      {pipeline,
       "model.profiled.forward_ms=[5, 10, 10, 15]",
       {"pipeline bubble (the slowest stage computes for 280 ms instead of 240 ms)", "compute equal"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.variant);
    const Outcome run = run_rehearse("compare " + c.base + " --variant '" + c.variant + "' --format json");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const std::string sentence = json::parse(run.out)[1]["comparison"]["sentence"];
    CAPTURE(sentence);
    for (const std::string& told : c.told) CHECK(sentence.find(told) != std::string::npos);
  }
}

TEST_CASE("what cannot be compared is told, and the others are compared") {
  const Scratch scratch;
  const std::string good = scratch.write("pipe.toml", kMeasuredStages);
  struct Case {
    std::string arguments;
    int status;
    std::string told;
    std::size_t compared;  // number of scenarios compared; `of`: number given
    std::size_t of;
  };
  // More messages than the simulator accepts: the run fails, although the input is valid.
  const std::string ring = shipped_scenario("bert-large-ring"),
                    huge =
                        " --variant 'simulation.fidelity=chunk strategy.chunk_kb=1 simulation.fold=false "
                        "simulation.steps=100'";
  const std::vector<Case> cases = {
      {good + " " + scratch.path("none.toml") + " " + good, 2, "rehearse: B: " + scratch.path("none.toml"), 2,
       3},
      {scratch.path("none.toml") + " " + good + " " + good, 2, "rehearse: A: ", 2, 3},
      {good + " --variant strategy.pipelin=2", 2, "did you mean \"pipeline\"", 1, 2},
      {good + " --variant ' '", 2, "--variant: it changes nothing", 1, 2},
      {good + " --variant 'training.micro_batch'", 2, "there is no \"=\"", 1, 2},
      {ring + huge, 1, "rehearse: B: fidelity \"chunk\" would send", 1, 2},
      {ring + huge + " --variant strategy.pipelin=2", 2, "rehearse: C: ", 1, 3},
      {scratch.path("none.toml"), 2, "none.toml", 0, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.arguments);
    const Outcome run = run_rehearse("compare " + c.arguments + " --format json");
    CAPTURE(run.err);
    CHECK(run.status == c.status);
    CHECK(run.err.find(c.told) != std::string::npos);
    const json all = json::parse(run.out);
    REQUIRE(all.size() == c.of);
    std::size_t compared = 0;
    const json* base = nullptr;
    for (const json& one : all) {
      if (one.contains("error")) continue;
      if (base == nullptr) base = &one;
      CHECK(one["comparison"].is_null() == (base == &one));
      ++compared;
    }
    CHECK(compared == c.compared);
    CHECK(run_rehearse("compare " + c.arguments).status == c.status);
    CHECK(run_rehearse("compare " + c.arguments + " --format csv").status == c.status);
  }
  CHECK(run_rehearse("compare").status == 2);
  const Outcome input = run_rehearse("compare - - --format csv <" + good);
  CHECK(input.status == 0);
  CHECK(std::count(input.out.begin(), input.out.end(), '\n') == 3);
}
