// Tests checkpoints of real runs: a training that continues has the losses of one that was never interrupted,
// bit for bit, also with other degrees; what was killed while it was written is never read.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "backend/runs/checkpoint_files.hpp"
#include "models/text/error.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kPerceptron = R"([model.multi_layer_perceptron]
widths = [16, 24, 20, 24, 12]
[training]
global_batch = 16
micro_batch = 2
precision = "fp32"
optimizer = "adam"
[cluster]
preset = "cpu-cluster"
[run]
steps = 12
[checkpoint]
every = 4
storage.preset = "nas"
)";

const std::string kTransformer =
    std::string(kTinyTransformer) + "[run]\nsteps = 12\n[checkpoint]\nevery = 4\nstorage.preset = \"nas\"\n";

constexpr const char* kMixture =
    "model.transformer.biases=false --set model.transformer.experts=4 --set "
    "model.transformer.experts_per_token=2 --set "
    "strategy.capacity_factor=2";

// Returns the arguments of rehearse-run.
std::string run_of(const std::string& scenario, int nodes, const std::string& sets, const std::string& more) {
  std::string line =
      fmt::format("run {} --oversubscribe --format json --set cluster.nodes={}", scenario, nodes);
  if (!sets.empty()) line += " --set " + sets;
  return line + " " + more;
}

std::vector<double> tail(const std::vector<double>& all, std::size_t first) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first), all.end()};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("checkpoints: a training that continues has the losses of one that was not interrupted") {
  struct Case {
    const char* what;
    std::string model;
    int nodes;
    const char* sets;
  };
  for (const Case& c : std::vector<Case>{
           {"replicas", kPerceptron, 2, ""},
           {"pipeline", kPerceptron, 2, "strategy.pipeline=2 --set strategy.data=1"},
           {"tensor", kPerceptron, 2, "strategy.tensor=2 --set strategy.data=1"},
           {"zero 1", kPerceptron, 2, "strategy.zero_stage=1"},
           {"zero 3", kTransformer, 2, "training.optimizer=momentum --set strategy.zero_stage=3"},
           {"transformer", kTransformer, 2,
            "training.optimizer=momentum --set strategy.tensor=2 --set strategy.data=1"},
           {"context", kTransformer, 2,
            "training.optimizer=momentum --set strategy.context=2 --set strategy.data=1 --set "
            "strategy.zero_stage=1"},
           {"experts", kTransformer, 2, "training.optimizer=momentum --set strategy.expert=2 --set "},
           {"local sgd", kPerceptron, 2,
            "strategy.gradients=local-sgd --set strategy.local_sgd.every=3 --set checkpoint.every=12"},
           {"first device", kPerceptron, 1,
            "cluster.node.devices=2 --set cluster.node.interconnect=nvswitch --set "
            "cluster.node.nvlink_gb_per_s=10 "
            "--set strategy.gradients=first-device --set training.micro_batch=1"}}) {
    CAPTURE(c.what);
    std::string sets = c.sets;
    if (std::string(c.what) == "experts") sets += kMixture;
    const Scratch scratch;
    const std::string scenario = scratch.write("job.toml", c.model);
    const std::vector<double> whole = losses_of(run_of(scenario, c.nodes, sets, ""));
    REQUIRE(whole.size() >= 12);
    const std::size_t each = whole.size() / 12;  // optimizer steps of a run of the schedule
    for (const char* mode : {"blocking", "async"}) {
      CAPTURE(mode);
      const std::string folder = scratch.path(mode),
                        with = fmt::format("--set checkpoint.mode={} --checkpoints {}", mode, folder);
      const std::vector<double> begun =
          losses_of(run_of(scenario, c.nodes, sets, with + " --set run.steps=8"));
      CHECK(begun ==
            std::vector<double>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(8 * each)));
      CHECK(names_in(folder) == std::vector<std::string>{"step-00000004", "step-00000008"});
      CHECK(losses_of(run_of(scenario, c.nodes, sets, with)) == tail(whole, 8 * each));
      CHECK(names_in(folder) == std::vector<std::string>{"step-00000008", "step-00000012"});
    }
  }
}

TEST_CASE("checkpoints: a training continues with other degrees") {
  struct Case {
    const char* what;
    int nodes;
    const char* sets;
  };
  const std::vector<Case> ways = {
      {"one rank", 1, ""},
      {"two replicas", 2, ""},
      {"shards of optimizer state", 2, "strategy.zero_stage=1"},
      {"shards of everything on four", 4, "strategy.zero_stage=3"},
      {"stages", 2, "strategy.pipeline=2 --set strategy.data=1"},
      {"replicas of sharded stages", 4, "strategy.pipeline=2 --set strategy.zero_stage=2"}};
  const Scratch scratch;
  const std::string scenario = scratch.write("job.toml", kPerceptron);
  const std::vector<double> whole = losses_of(run_of(scenario, 1, "", ""));
  for (const Case& from : ways)
    for (const Case& to : ways) {
      if (&from == &to) continue;
      CAPTURE(from.what, to.what);
      const std::string folder =
                            scratch.path(fmt::format("{}-to-{}", &from - ways.data(), &to - ways.data())),
                        with = "--checkpoints " + folder;
      losses_of(run_of(scenario, from.nodes, from.sets, with + " --set run.steps=4"));
      const std::vector<double> continued = losses_of(run_of(scenario, to.nodes, to.sets, with));
      REQUIRE(continued.size() == 8);
      for (std::size_t i = 0; i < continued.size(); ++i)
        CHECK(continued[i] == Approx(whole[4 + i]).epsilon(1e-5));
    }
}

TEST_CASE("checkpoints: what does not go on is refused, and says why") {
  const Scratch scratch;
  const std::string scenario = scratch.write("job.toml", kPerceptron), folder = scratch.path("kept"),
                    with = "--checkpoints " + folder;
  losses_of(run_of(scenario, 2, "", with + " --set run.steps=4"));
  const auto refusal = [&](const std::string& line) {
    const Outcome outcome = run_program("rehearse-run", line);
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  const auto says = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says(refusal(run_of(scenario, 2, "", with + " --set run.steps=4")),
       "is the state after step 4, and [run] has 4 steps; allowed: more run.steps");
  says(refusal(run_of(scenario, 2, "", with + " --set training.optimizer=sgd")),
       "training.optimizer is adam there, and sgd in job");
  says(refusal(run_of(scenario, 2, "", with + " --set run.seed=7")), "run.seed is 1 there, and 7 in job");
  says(refusal(run_of(scratch.write("plain.toml", kDeepPerceptron), 1, "", with)),
       "--checkpoints is given, and [checkpoint] is missing");
  const std::string fresh = "--checkpoints " + scratch.path("fresh");
  says(refusal(run_of(scenario, 2, "strategy.gradients=parameter-server", fresh)),
       "servers hold the weights");
  says(refusal(run_of(scenario, 2, "strategy.compression=top-k", fresh)), "carry what was not sent");
  says(refusal(run_of(scenario, 2, "strategy.gradients=delayed-all-reduce", fresh)), "one step later");
  // Other tensor degrees divide layers in another way.
  const Outcome divided =
      run_program("rehearse-run", run_of(scenario, 2, "strategy.tensor=2 --set strategy.data=1", with));
  CHECK(divided.status == 1);
  says(divided.err, "another strategy divided the layer in another way");
}

TEST_CASE("checkpoints: damaged ones are passed over") {
  for (const char* damage : {"truncate", "change", "remove", "manifest", "no manifest"}) {
    CAPTURE(damage);
    const Scratch scratch;
    const std::string scenario = scratch.write("job.toml", kPerceptron), folder = scratch.path("kept"),
                      with = "--checkpoints " + folder;
    const std::vector<double> whole = losses_of(run_of(scenario, 2, "", with));
    const std::string newest = folder + "/step-00000012", file = newest + "/rank-00000.bin",
                      manifest = newest + "/manifest.json";
    const std::string how = damage;
    if (how == "truncate") fs::resize_file(file, fs::file_size(file) - 4);
    if (how == "change")
      std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(40).put('x');
    if (how == "remove") fs::remove(file);
    if (how == "manifest") fs::resize_file(manifest, fs::file_size(manifest) / 2);
    if (how == "no manifest") fs::remove(manifest);
    const FoundCheckpoint found = newest_checkpoint(folder);
    CHECK(found.manifest.round == 8);
    CHECK(found.damaged.size() == 1);
    CHECK(losses_of(run_of(scenario, 2, "", with)) == tail(whole, 8));
  }
}

TEST_CASE("checkpoints: a kill at any moment loses nothing that was written") {
  // Every run is killed at a random moment; the last one ends. REHEARSE_INPUTS sets the number of kills.
  const char* asked = std::getenv("REHEARSE_INPUTS");
  const int kills = asked == nullptr ? 4 : std::atoi(asked);
  const Scratch scratch;
  const std::string scenario = scratch.write("job.toml", kPerceptron);
  const int steps = 249 * kills;  // as many as some more kills would leave
  const std::string sets =
      fmt::format("run.steps={} --set checkpoint.every=3 --set strategy.zero_stage=1", steps);
  const std::vector<double> whole = losses_of(run_of(scenario, 2, sets, ""));
  std::mt19937 random(11);
  for (const char* mode : {"blocking", "async"}) {
    CAPTURE(mode);
    std::string folder = scratch.path(mode);
    long last = 0;
    for (int kill = 0; kill < kills; ++kill) {
      const std::string line =
          run_of(scenario, 2, sets, fmt::format("--set checkpoint.mode={} --checkpoints {}", mode, folder));
      const std::string delay =
          fmt::format("{:.3f}", 0.02 + 0.4 * std::generate_canonical<double, 32>(random));
      run_program("rehearse-run", line, "timeout -s KILL " + delay);
      const FoundCheckpoint found = newest_checkpoint(folder);
      CHECK(found.damaged.empty());
      const long round = found.folder.empty() ? 0 : found.manifest.round;
      CHECK(round >= last);
      CHECK(round % 3 == 0);
      last = round;
      if (round >= steps) break;
    }
    if (last >= steps) continue;
    CHECK(losses_of(run_of(scenario, 2, sets,
                           fmt::format("--set checkpoint.mode={} --checkpoints {}", mode, folder))) ==
          tail(whole, static_cast<std::size_t>(last)));
  }
}
