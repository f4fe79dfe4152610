// Tests that data of as many steps as fit into memory are made at once, and that it does not matter how many.
#include "backend/training/workload_parts.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;

TEST_CASE("Data of as many steps are kept as fit, and of at least two") {
  struct Kept {
    bool on_processors;
    long steps;
    double bytes_of_step;
    long kept;
  };
  const Kept all[] = {
      {true, 10, 1e6, 10},     // all: 10 of 64 MB
      {true, 64, 1e6, 64},     // exactly 64 MB
      {true, 100, 1e6, 64},    // 64 MB
      {true, 100, 40e6, 2},    // one step fits, but the next one's data are made while it runs
      {true, 1, 40e6, 1},      // there is only one
      {true, 0, 1e6, 1},       // a slot is needed to measure without steps
      {false, 100, 1e6, 100},  // GPUs keep 256 MB
      {false, 1000, 1e6, 256},
  };
  for (const Kept& k : all) {
    CAPTURE(k.on_processors, k.steps, k.bytes_of_step);
    TrainingOptions options;
    options.on_processors = k.on_processors;
    CHECK(kept_steps(options, k.steps, k.bytes_of_step) == k.kept);
  }
}

// 4 MB a step on one rank, so 15 steps at once, and 2 MB on each of two, so 31: of 40 steps.
TEST_CASE("Data that are made for several steps at once train as those of all steps") {
  const Scratch scratch;
  const std::string scenario = scratch.write("wide.toml", R"([model.multi_layer_perceptron]
widths = [4096, 8, 4]
[training]
global_batch = 256
micro_batch = 128
precision = "fp32"
[cluster]
preset = "cpu-cluster"
nodes = 2
[strategy]
data = 2
[run]
steps = 40
)");
  const Outcome outcome = run_program("rehearse-run", "verify " + scenario);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("40 steps") != std::string::npos);
}
