// Tests the record of NCCL's choices for each collective, which NCCL reports to its profiler plugins.
#ifdef REHEARSE_HAVE_CUDA

#include <algorithm>
#include <nlohmann/json.hpp>

#include "simulator/report/gpu_record_json.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;
using nlohmann::json;

namespace {

test::Outcome run(const std::string& arguments, const std::string& environment = "") {
  const test::Scratch scratch;
  return test::run_on_stand_in(
      "rehearse-run",
      "run --patience 20 --format json " + arguments + " " + scratch.write("two-ranks.toml", test::kTwoRanks),
      environment + " STAND_IN_GPUS=2");
}

bool has_note(const json& measured, const std::string& beginning) {
  return std::any_of(measured["notes"].begin(), measured["notes"].end(),
                     [&](const json& note) { return note.get<std::string>().starts_with(beginning); });
}

}  // namespace

TEST_CASE("a record tells NCCL's algorithm, protocol and channels for each collective") {
  struct Case {
    std::string arguments, environment, algorithm;
  };
  for (const Case& c : std::vector<Case>{
           {"", "", "RING"}, {"", "NCCL_ALGO=Tree", "TREE"}, {"--set run.cuda_graphs=true", "", "RING"}}) {
    CAPTURE(c.arguments, c.environment);
    const json measured =
        test::measured_in(run("--device gpu --nccl-choices --set strategy.bucket_mb=0.01 --set "
                              "'model.multi_layer_perceptron.widths=[8,64,64,32,10]' " +
                                  c.arguments,
                              c.environment));
    CHECK(has_note(measured, "NCCL chose: all-reduce of "));
    REQUIRE(measured["gpu_ranks"].size() == 2);
    for (const json& rank : measured["gpu_ranks"]) {
      const json& chosen = rank.at("collectives");
      REQUIRE(chosen.size() >= 2);
      bool small = false, large = false;
      for (const json& one : chosen) {
        const double bytes = one["bytes"].get<double>();
        (bytes < 4096 ? small : large) = true;
        CHECK(one["kind"] == "all-reduce");
        CHECK(one["name"].get<std::string>().find("all-reduce") != std::string::npos);
        CHECK(one["algorithm"] == c.algorithm);
        CHECK(one["protocol"] == (bytes < 4096 ? "LL" : "SIMPLE"));
        CHECK(one["channels"].get<int>() > 0);
        CHECK(one["calls"].get<int>() >= 1);
      }
      CHECK(small);
      CHECK(large);
    }
  }
}

TEST_CASE("where NCCL's choices cannot be told, a note says why") {
  const json measured = test::measured_in(run("--device gpu --nccl-choices", "NCCL_PROFILER_PLUGIN=other"));
  CHECK(has_note(measured,
                 "what NCCL chose is not recorded: NCCL_PROFILER_PLUGIN=other in the environment names "
                 "another plugin"));
  CHECK_FALSE(measured["gpu_ranks"][0].contains("collectives"));
  CHECK_FALSE(test::measured_in(run("--device gpu"))["gpu_ranks"][0].contains("collectives"));
}

TEST_CASE("recording NCCL's choices is refused where NCCL chooses nothing") {
  for (const char* arguments : {"--device cpu", "--device gpu --collectives schedule"}) {
    CAPTURE(arguments);
    const test::Outcome outcome = run(std::string("--nccl-choices ") + arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find("--nccl-choices applies to NCCL's own collectives") != std::string::npos);
  }
}

TEST_CASE("chosen collectives are written and read again") {
  GpuRecord record;
  record.uuid = "GPU-1";
  record.collectives.push_back({7, "all-reduce bucket 0", "all-reduce", 1e6, "NVLS", "SIMPLE", 16, 40});
  const std::string file = "record.json";
  const json written = json::parse(to_json(record).dump());
  const GpuRecord read = read_gpu_record(JsonReader(written, file));
  CHECK(to_json(read) == to_json(record));
  REQUIRE(read.collectives.size() == 1);
  CHECK(read.collectives[0].channels == 16);
}

#endif
