// Tests the recording of the kernels that GPUs run under their ops, on the stand-in for CUPTI. They are only
// for display and change no figure.
#if defined(REHEARSE_HAVE_CUDA) && defined(REHEARSE_CUPTI_STAND_IN)

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "simulator/report/recorded_run.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;
using nlohmann::json;

namespace {

test::Outcome run_with_kernels(const std::string& arguments, const std::string& environment = "") {
  return test::run_on_stand_in("rehearse-run", "run --device gpu --patience 20 --kernels " + arguments,
                               environment + " STAND_IN_GPUS=2 LD_LIBRARY_PATH=" REHEARSE_CUPTI_STAND_IN
                                             "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
}

bool is_kernel(const json& event) {
  return event.value("cat", "") == "kernel";
}

json recorded(const test::Outcome& outcome, const std::string& trace) {
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.status == 0);
  return json::parse(test::read_file(trace));
}

// Returns the trace as a run without --kernels would have written it.
json without_kernels(json trace) {
  json kept = json::array();
  for (const json& event : trace["traceEvents"]) {
    const bool track = event["name"] == "thread_name" &&
                       event["args"]["name"].get<std::string>().starts_with("kernels of GPU stream ");
    if (!is_kernel(event) && !track) kept.push_back(event);
  }
  trace["traceEvents"] = kept;
  return trace;
}

}  // namespace

TEST_CASE("kernels are recorded under the ops that launch them") {
  const test::Scratch scratch;
  const std::string path = scratch.path("run.json");
  const json trace =
      recorded(run_with_kernels(scratch.write("run.toml", test::kTwoRanks) + " --trace " + path,
                                "STAND_IN_DELAY_US=50"),
               path);
  using Launch = std::tuple<int, int, int>;         // rank, op, step
  std::map<Launch, std::pair<double, double>> ops;  // ready time and end of each op, in us
  std::map<Launch, std::set<std::string>> kernels;
  std::map<std::pair<int, int>, std::string> tracks;
  for (const json& event : trace["traceEvents"]) {
    const json& args = event.value("args", json::object());
    if (event["name"] == "thread_name") tracks[{event["pid"], event["tid"]}] = args["name"];
    if (event["ph"] == "X" && !is_kernel(event))
      ops[{event["pid"], args["op"], args["step"]}] = {
          args["ready_us"], event["ts"].get<double>() + event["dur"].get<double>()};
  }
  constexpr double kClocks_us = 1000;  // tolerance for two clock readings on a busy machine
  for (const json& event : trace["traceEvents"]) {
    if (!is_kernel(event)) continue;
    const json& args = event["args"];
    const Launch launch{event["pid"], args["launched_by"], args["step"]};
    kernels[launch].insert(event["name"]);
    REQUIRE(ops.contains(launch));
    CHECK(event["ts"].get<double>() > ops[launch].first - kClocks_us);
    CHECK(event["ts"].get<double>() + event["dur"].get<double>() < ops[launch].second + kClocks_us);
    CHECK(tracks[{event["pid"], event["tid"]}] ==
          "kernels of GPU stream " + std::to_string(args["stream"].get<int>()));
  }
  int forward = 0, reduced = 0, updates = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || is_kernel(event)) continue;
    const json& args = event["args"];
    const auto& its = kernels[{event["pid"], args["op"], args["step"]}];
    const auto has = [&](const std::string& part) {
      return std::any_of(its.begin(), its.end(),
                         [&](const std::string& name) { return name.find(part) != std::string::npos; });
    };
    CAPTURE(event["name"].get<std::string>());
    if (event["cat"] == "forward")
      forward += has("gemm") && has("device::add_bias<float, float>") ? 1 : -1000;
    if (args["kind"] == "all-reduce") reduced += has("ncclDevKernel_AllReduce") ? 1 : -1000;
    if (event["cat"] == "optimizer") updates += has("device::update<") ? 1 : -1000;
  }
  CHECK(forward > 0);
  CHECK(reduced > 0);
  CHECK(updates > 0);
}

TEST_CASE("kernels change no figure, and are read again as they were written") {
  const test::Scratch scratch;
  const std::string path = scratch.path("run.json");
  const json trace =
      recorded(run_with_kernels(scratch.write("run.toml", test::kTwoRanks) + " --trace " + path), path);
  const json less = without_kernels(trace);
  REQUIRE(less["traceEvents"].size() < trace["traceEvents"].size());
  const auto judged = [&](const json& one) {
    const std::string file = scratch.write("judged.json", one.dump());
    const test::Outcome outcome = test::run_rehearse("validate " + file + " --format json");
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
  };
  CHECK(judged(trace) == judged(less));

  const RecordedRun run = read_run(path);
  CHECK(run.trace.spans.size() == read_run(scratch.write("less.json", less.dump())).trace.spans.size());
  const std::string again = scratch.path("again.json");
  write_run(run, again);
  const auto kernels_of = [](const json& one) {
    json kernels = json::array();
    std::copy_if(one["traceEvents"].begin(), one["traceEvents"].end(), std::back_inserter(kernels),
                 is_kernel);
    return kernels;
  };
  CHECK(kernels_of(json::parse(test::read_file(again))) == kernels_of(trace));
}

TEST_CASE("kernels of CUDA graphs are recorded without the op that launched them") {
  const test::Scratch scratch;
  const std::string path = scratch.path("run.json");
  const json trace = recorded(run_with_kernels(scratch.write("run.toml", test::kTwoRanks) +
                                               " --set run.cuda_graphs=true --trace " + path),
                              path);
  int kernels = 0;
  for (const json& event : trace["traceEvents"]) {
    if (!is_kernel(event)) continue;
    ++kernels;
    CHECK_FALSE(event["args"].contains("launched_by"));
  }
  CHECK(kernels > 0);
  CHECK(read_run(path).trace.kernels.size() == 2);
}

TEST_CASE("without CUPTI a run goes on, and a note says why no kernels were recorded") {
  const test::Scratch scratch;
  const std::string path = scratch.path("run.json");
  const json trace =
      recorded(run_with_kernels(scratch.write("run.toml", test::kTwoRanks) + " --trace " + path,
                                "CUPTI_STAND_IN_FAULT=cuptiActivityEnable"),
               path);
  const json& notes = trace["otherData"]["measured"]["notes"];
  CHECK(std::count(notes.begin(), notes.end(),
                   json("GPU kernels are not recorded: cuptiActivityEnable failed: "
                        "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")) == 1);
  CHECK(std::none_of(trace["traceEvents"].begin(), trace["traceEvents"].end(), is_kernel));
}

TEST_CASE("recording kernels is refused where nothing could be recorded") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("run.toml", test::kTwoRanks);
  for (const std::string arguments : {"--device gpu --oversubscribe", "--device cpu --trace "}) {
    CAPTURE(arguments);
    const std::string trace = arguments.ends_with("--trace ") ? scratch.path("run.json") : "";
    const test::Outcome outcome =
        test::run_on_stand_in("rehearse-run", "run --kernels " + arguments + trace + " " + scenario);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find("--kernels records a GPU's kernels") != std::string::npos);
  }
}

#endif
