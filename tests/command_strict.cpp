// Tests scenarios that exceed device memory: a warning, or an error with --strict.
#include <fstream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;

namespace {

// GPT-2 with all activations of four micro-batches, which need more than the 16 GiB of the first of two
// devices.
constexpr const char* kScenario = R"([model]
preset = "gpt2"
[training]
global_batch = 64
micro_batch = 16
[cluster]
preset = "dgx1-v100"
devices_per_node = 2
[strategy]
data = 1
pipeline = 2
)";

bool holds(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  return text.find(part) != std::string::npos;
}

std::size_t lines(const std::string& text, const std::string& part) {
  std::istringstream in(text);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line);) count += line.find(part) != std::string::npos ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a scenario that does not fit into memory is refused with --strict, and else warned of") {
  const Scratch scratch;
  const std::string file = scratch.write("large.toml", kScenario), trace = scratch.path("trace.json");
  const Outcome warned = run_rehearse("simulate " + file);
  CHECK(warned.status == 0);
  CHECK(holds(warned.out, "Does not fit: stage 0 needs "));

  for (const char* format : {"text", "json", "csv"}) {
    CAPTURE(format);
    const Outcome refused =
        run_rehearse("simulate " + file + " --strict --format " + format + " --trace " + trace);
    CHECK(refused.status == 1);
    CHECK(refused.out.empty());
    CHECK(refused.err.rfind("rehearse: large does not fit into memory: stage 0 needs ", 0) == 0);
    CHECK(holds(refused.err, " of 16.0 GiB (optimizer "));
    CHECK(holds(refused.err, "(try --set training.recompute=selective"));
    CHECK_FALSE(std::ifstream(trace).good());
  }
  const Outcome fits = run_rehearse("simulate " + file + " --strict --set training.recompute=selective");
  CAPTURE(fits.err);
  CHECK(fits.status == 0);
  CHECK(holds(fits.out, "Memory: stage 0 is the fullest: "));
}

TEST_CASE("sweeps and comparisons count what does not fit as failed with --strict") {
  const Scratch scratch;
  const std::string file = scratch.write("large.toml", kScenario), out = scratch.path("points.csv");
  const std::string sweep = "sweep " + file + " --vary training.recompute=none,selective --out " + out;
  const Outcome told = run_rehearse(sweep);
  CHECK(told.status == 0);
  CHECK(holds(told.err, "1 need more memory than a device has"));
  // A sweep file written without --strict is not continued with it, or the other way round.
  const Outcome mixed = run_rehearse(sweep + " --strict");
  CHECK(mixed.status == 2);
  CHECK(holds(mixed.err, "--strict is not the same"));
  const Outcome strict = run_rehearse(sweep + " --strict --force-new");
  CHECK(strict.status == 1);
  CHECK(holds(strict.err, "1 failed"));
  const std::string rows = read_file(out);
  CHECK(lines(rows, "failed,\"large does not fit into memory: stage 0 needs ") == 1);
  CHECK(lines(rows, ",ok,") == 1);

  const std::string compare = "compare " + file + " --variant training.recompute=selective";
  const Outcome both = run_rehearse(compare), one = run_rehearse(compare + " --strict");
  CHECK(both.status == 0);
  CHECK(one.status == 1);
  CHECK(holds(one.err, "rehearse: A: large does not fit into memory: stage 0 needs "));
  CHECK_FALSE(holds(one.out, "A: large, "));
  CHECK(holds(one.out, "B: large"));
}

TEST_CASE("what does not fit into host memory is warned of, and refused with --strict") {
  const Scratch scratch;
  const std::string file = scratch.write("offloaded.toml", R"([model]
preset = "gpt2"
[training]
global_batch = 16
micro_batch = 2
precision = "fp16"
[cluster]
preset = "dgx1-v100"
[strategy]
preset = "deepspeed-zero-offload"
)");
  const Outcome fits = run_rehearse("simulate " + file + " --strict");
  CAPTURE(fits.err);
  CHECK(fits.status == 0);
  CHECK(holds(fits.out, " of 512 GiB on node0."));
  const std::string small = " --set cluster.node.cpu_memory_gib=1";
  CHECK(holds(run_rehearse("simulate " + file + small).out, "Host memory: does not fit, node0 needs "));
  const Outcome refused = run_rehearse("simulate " + file + small + " --strict");
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK(refused.err.rfind("rehearse: offloaded does not fit: Host memory: does not fit, node0 needs ", 0) ==
        0);
}
