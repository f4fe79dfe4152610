// Tests that failures of GPUs, NCCL and peers end a run as documented: with the cause, in time, and without
// leaving anything behind.
#ifdef REHEARSE_HAVE_CUDA

#include <chrono>
#include <filesystem>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Outcome run_on_gpu(const std::string& arguments, const std::string& environment) {
  const Scratch scratch;
  return run_on_stand_in("rehearse-run",
                         "run --device gpu " + arguments + " " + scratch.write("run.toml", kTwoRanks),
                         environment);
}

std::size_t shared_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with("gpu-stand-in-")) ++count;
  return count;
}

}  // namespace

TEST_CASE("a run that GPUs do not let go on ends with the cause", "[alone]") {
  struct {
    const char* name;
    const char* arguments;
    const char* environment;
    int status;
    const char* told;
  } const cases[] = {
      {"no GPU", "--oversubscribe", "STAND_IN_GPUS=0", 1,
       "rank 0 finds no GPU: no CUDA-capable device is detected"},
      {"too few GPUs", "", "STAND_IN_GPUS=1", 1,
       "2 ranks would share a GPU; allowed: a GPU for each rank, or --oversubscribe"},
      {"too little memory", "--oversubscribe --set 'model.multi_layer_perceptron.widths=[2000,2000,10]'",
       "STAND_IN_MEMORY_MB=12", 1, "cudaMalloc failed: 0.0161 GB were requested"},
      {"an all-reduce that does not end", "--oversubscribe --patience 2", "STAND_IN_FAULT='hang 1 3'", 1,
       "has not ended for 2 s: a peer has failed or hangs"},
      {"a rank that is killed", "--oversubscribe --patience 5", "STAND_IN_FAULT='die 1 3'", 1, "rank 1"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const std::size_t before = shared_files();
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run_on_gpu(c.arguments, c.environment);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == c.status);
    CHECK(outcome.err.find(c.told) != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
    CHECK(shared_files() == before);
  }
}

TEST_CASE("each rank takes a GPU of its own where there are enough") {
  const Outcome outcome = run_on_gpu("", "STAND_IN_GPUS=2 STAND_IN_DELAY_US=200");
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("share a GPU") == std::string::npos);
}

TEST_CASE("a run gives back all that it took from CUDA and NCCL") {
  for (const char* strategy : {"strategy.data=2", "strategy.overlap=false", "run.cuda_graphs=true",
                               "strategy.gradients=\"parameter-server\""}) {
    CAPTURE(strategy);
    const Scratch scratch;
    const std::string report = scratch.path("report");
    const Outcome outcome =
        run_on_gpu("--oversubscribe --set '" + std::string(strategy) + "'", "STAND_IN_REPORT=" + report);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    std::istringstream lines(read_file(report));
    int processes = 0;
    for (std::string line; std::getline(lines, line); ++processes)
      CHECK(line == "allocations=0 streams=0 events=0 cublas_handles=0 communicators=0 graphs=0");
    CHECK(processes >= 2);
  }
}

TEST_CASE("what the environment asks of CUDA does not make streams wait for each other") {
  const Outcome outcome = run_on_gpu("--oversubscribe --patience 10", "CUDA_DEVICE_MAX_CONNECTIONS=1");
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("CUDA_DEVICE_MAX_CONNECTIONS=1") != std::string::npos);
}

TEST_CASE("standard output is JSON alone, whatever NCCL says") {
  const Outcome outcome = run_on_gpu("--oversubscribe --format json", "NCCL_DEBUG=INFO");
  CHECK(outcome.status == 0);
  CHECK(outcome.out.starts_with("{"));
}

#endif
