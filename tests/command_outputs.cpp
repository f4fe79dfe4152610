// Tests the program's output files: written completely or not at all, never over an input, and with errors
// reported.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kPointing = R"([model]
file = "model.toml"
[training]
global_batch = 2
[cluster]
file = "cluster.toml"
nodes = 1
[simulation]
protocol = "measured"
link_profile = "links.toml"
)";
constexpr const char* kModel = R"([profiled]
stages = 1
forward_ms = 10
backward_input_ms = 12
backward_weight_ms = 8
p2p_bytes = 0
)";
constexpr const char* kCluster = R"([node]
device_file = "device.toml"
devices = 1
nic_gbps = 80
[fabric]
kind = "switch"
latency_us = 1
)";

std::string shipped(const std::string& path) {
  return std::string(REHEARSE_TESTS_DIR) + "/../" + path;
}

// Writes a scenario and all files that it refers to.
std::string write_pointing(const Scratch& scratch) {
  scratch.write("model.toml", kModel);
  scratch.write("cluster.toml", kCluster);
  scratch.write("device.toml", read_file(shipped("topologies/presets/devices/a100-80.toml")));
  scratch.write("links.toml", read_file(shipped("tests/measured-links.toml")));
  return scratch.write("s.toml", kPointing);
}

std::vector<std::string> names_in(const Scratch& scratch) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch.path("")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a trace is not written over a file that the scenario is read from") {
  const Scratch scratch;
  const std::string scenario = write_pointing(scratch);
  fs::create_symlink("s.toml", scratch.path("link.toml"));
  fs::create_hard_link(scenario, scratch.path("hard.toml"));
  const Outcome without = run_rehearse("simulate " + scenario);
  CAPTURE(without.err);
  REQUIRE(without.status == 0);
  for (const std::string name : {"s.toml", "./s.toml", "link.toml", "hard.toml", "model.toml", "cluster.toml",
                                 "device.toml", "links.toml"}) {
    CAPTURE(name);
    const std::string target = scratch.path(name), before = read_file(target);
    const Outcome run = run_rehearse("simulate " + scenario + " --trace " + target);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("--trace " + target + " would overwrite ") == 0);
    CHECK(read_file(target) == before);
  }
  const Outcome piped =
      run_rehearse("simulate - --trace " + scenario + " < " + scenario, "cd " + scratch.path("") + ";");
  CHECK(piped.status == 2);
  CHECK(read_file(scenario) == kPointing);
}

TEST_CASE("a sweep is not written over a file that it reads") {
  const Scratch scratch;
  const std::string scenario = write_pointing(scratch);
  const std::string sweep =
      scratch.write("sweep.toml", "scenario = \"s.toml\"\n[vary]\ntraining.global_batch = [2, 4]\n");
  scratch.write("other.toml", kModel);
  for (const auto& [input, out] :
       {std::pair(scenario + " --vary training.global_batch=2,4", "s.toml"),
        std::pair(scenario + " --vary training.global_batch=2,4", "model.toml"),
        std::pair(scenario + " --vary model.file=model.toml,other.toml", "other.toml"),
        std::pair(sweep, "s.toml"), std::pair(sweep, "sweep.toml")}) {
    CAPTURE(input, out);
    const std::string target = scratch.path(out), before = read_file(target);
    const Outcome run = run_rehearse("sweep " + input + " --force-new --out " + target);
    CHECK(run.status == 2);
    CHECK(run.err.find("--out " + target + " would overwrite ") == 0);
    CHECK(read_file(target) == before);
  }
}

TEST_CASE("a file without a name is refused") {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", kMeasuredStages);
  for (const std::string& arguments : {"simulate " + scenario + " --trace ''",
                                       "sweep " + scenario + " --vary training.micro_batch=1,2 --out ''"}) {
    CAPTURE(arguments);
    const Outcome run = run_rehearse(arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("is empty; allowed: the name of a file") != std::string::npos);
  }
}

TEST_CASE("a trace that cannot be written whole is not there, and an earlier one stays") {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", kMeasuredStages);
  for (const std::string name : {"trace.json", "trace.json.gz"}) {
    CAPTURE(name);
    // The limit of one block (512 or 1024 bytes) is less than the trace, compressed or not.
    const Outcome run =
        run_rehearse("simulate " + scenario + " --trace " + scratch.path(name), "ulimit -f 1;");
    CHECK(run.status == 1);
    CHECK(run.out.empty());
    CHECK(run.err == "rehearse: " + scratch.path(name) + ": cannot be written: File too large\n");
    CHECK(names_in(scratch) == std::vector<std::string>{"s.toml"});
  }
  scratch.write("trace.json", "earlier");
  CHECK(run_rehearse("simulate " + scenario + " --trace " + scratch.path("trace.json"), "ulimit -f 1;")
            .status == 1);
  CHECK(read_file(scratch.path("trace.json")) == "earlier");
  CHECK(names_in(scratch) == std::vector<std::string>{"s.toml", "trace.json"});
}

TEST_CASE("a trace may go to a device or a pipe") {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", kMeasuredStages);
  CHECK(run_rehearse("simulate " + scenario + " --trace /dev/null").status == 0);
  CHECK(fs::is_character_file("/dev/null"));
  const Outcome piped = run_rehearse("simulate " + scenario + " --trace /dev/stdout");
  CHECK(piped.status == 0);
  CHECK(piped.out.find("\"traceEvents\"") != std::string::npos);
  CHECK(piped.out.find("  step ") != std::string::npos);
  const Outcome full = run_rehearse("simulate " + scenario + " --trace /dev/full");
  CHECK(full.status == 1);
  CHECK(full.err == "rehearse: /dev/full: cannot be written: No space left on device\n");
}

TEST_CASE("a reader that goes is no error, a full disk is one") {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", kMeasuredStages);
  const std::string sweep = "sweep " + scenario + " --vary training.micro_batch=1,2";
  for (const std::string& arguments : {std::string("list models"), "simulate " + scenario, sweep}) {
    CAPTURE(arguments);
    fs::remove(scratch.path("pipe"));
    // Makes a pipe whose reader is gone: opened for reading and writing, then only for writing.
    const Outcome run = run_rehearse(arguments + " >&3", "mkfifo " + scratch.path("pipe") + "; exec 4<>" +
                                                             scratch.path("pipe") + " 3>" +
                                                             scratch.path("pipe") + "; exec 4<&-;");
    CHECK(run.status == 0);
    CHECK(run.err.find("written") == std::string::npos);
    CHECK(run.err.find("Broken pipe") == std::string::npos);
    const Outcome full = run_rehearse(arguments + " > /dev/full");
    CHECK(full.status == 1);
    CHECK(full.err.find("standard output") != std::string::npos);
    CHECK(full.err.find("cannot be written: No space left on device") != std::string::npos);
  }
}

TEST_CASE("too small a stack is an error in words") {
  if (rehearse::testing::kSanitized) SKIP("the address sanitizer itself needs a larger one");
  for (const int kib : {64, 256}) {
    CAPTURE(kib);
    const Outcome run = run_rehearse("list models", "ulimit -s " + std::to_string(kib) + ";");
    CHECK(run.status == 1);
    CHECK(run.err == "rehearse: the stack is limited to " + std::to_string(kib) +
                         " KiB; allowed: at least 512 KiB (ulimit -s)\n");
  }
  CHECK(run_rehearse("list models", "ulimit -s 512;").status == 0);
}
