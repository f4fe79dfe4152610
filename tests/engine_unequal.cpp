// Tests divisions of work by the speed of devices: layers of stages, and samples of replicas.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/layout/batch_division.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

struct UnequalOutcome {
  Scenario scenario;
  Plan plan;
  Metrics metrics;
};

UnequalOutcome unequal(const std::string& model, int devices, const std::string& slow, int global_batch,
                       const std::string& strategy, bool fold = true) {
  const std::string text = fmt::format(
      "[model]\n{}\n[training]\nglobal_batch = {}\nmicro_batch = 8\nprecision = \"bf16\"\n[cluster]\nnodes = "
      "{}\n{}\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 400\n[cluster.fabric]\nkind = "
      "\"switch\"\n[strategy]\n{}\n[simulation]\nprotocol = \"ideal\"\nfold = {}\n",
      model, global_batch, devices, slow, strategy, fold);
  UnequalOutcome run{read_scenario_text(text, "test.toml", {}), {}, {}};
  run.plan = write_schedule(run.scenario);
  const Trace trace = simulate_in_child(
      one_job(*run.plan.schedule, run.plan.endpoints, run.plan.schedule->repeats(run.scenario.steps)),
      *run.scenario.cluster, run.scenario.engine);
  run.metrics = evaluate(trace, run.scenario, run.plan);
  return run;
}

// Layers of 3 ms for 8 samples, whose gradients and activations take no time.
std::string layers_of_3_ms(int layers) {
  return fmt::format(
      "profiled = {{layers = {}, forward_ms = 1, backward_input_ms = 1, backward_weight_ms = "
      "1, p2p_bytes = 1, parameters = 1, optimizer_ms = 0.000001, micro_batch = 8}}",
      layers);
}

double slowest_s(const std::vector<double>& sample_s, const std::vector<int>& samples) {
  double slowest = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) slowest = std::max(slowest, samples[i] * sample_s[i]);
  return slowest;
}

// The integer programme, by enumeration of all divisions.
double least_slowest_s(const std::vector<double>& sample_s, int each, int most_moved) {
  std::vector<int> samples(sample_s.size(), 1);
  double least = 1e300;
  const std::function<void(std::size_t, int, int)> choose = [&](std::size_t i, int left, int moved) {
    if (moved > most_moved && most_moved > 0) return;
    if (i + 1 == samples.size()) {
      samples[i] = left;
      moved += std::max(0, left - each);
      if (left >= 1 && (most_moved == 0 || moved <= most_moved))
        least = std::min(least, slowest_s(sample_s, samples));
      return;
    }
    for (samples[i] = 1; samples[i] < left; ++samples[i])
      choose(i + 1, left - samples[i], moved + std::max(0, samples[i] - each));
  };
  choose(0, each * static_cast<int>(samples.size()), 0);
  return least;
}

}  // namespace

TEST_CASE("unequal: no other division of samples makes the slowest replica faster") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> speed(0.3, 3);
  int divided = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<double> sample_s(2 + random() % 3);
    for (double& s : sample_s) s = random() % 3 == 0 ? 1 : speed(random);
    const int each = 1 + static_cast<int>(random() % 5), moved = static_cast<int>(random() % 5);
    CAPTURE(sample_s, each, moved);
    const std::vector<int> samples = divide_samples(sample_s, each, moved);
    CHECK(std::accumulate(samples.begin(), samples.end(), 0) == each * static_cast<int>(sample_s.size()));
    CHECK(*std::min_element(samples.begin(), samples.end()) >= 1);
    CHECK(slowest_s(sample_s, samples) == Approx(least_slowest_s(sample_s, each, moved)).epsilon(1e-12));
    if (*std::max_element(samples.begin(), samples.end()) > each) ++divided;
  }
  CHECK(divided > 100);
}

TEST_CASE("unequal: no other cut makes the slowest of unequal stages faster") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> seconds(0.5, 2);
  for (int round = 0; round < 100; ++round) {
    const int layers = 3 + static_cast<int>(random() % 8);
    std::vector<std::vector<double>> times(3, std::vector<double>(static_cast<std::size_t>(layers)));
    for (std::vector<double>& stage : times)
      for (double& layer_s : stage) layer_s = seconds(random);
    const auto longest_s = [&](const std::vector<int>& counts) {
      double longest = 0;
      int begin = 0;
      for (std::size_t s = 0; s < counts.size(); begin += counts[s++])
        longest = std::max(
            longest, std::accumulate(times[s].begin() + begin, times[s].begin() + begin + counts[s], 0.0));
      return longest;
    };
    double least = 1e300;
    for (int a = 1; a < layers - 1; ++a)
      for (int b = 1; a + b < layers; ++b) least = std::min(least, longest_s({a, b, layers - a - b}));
    CHECK(longest_s(balance_stages(times)) == Approx(least).epsilon(1e-12));
  }
}

TEST_CASE("unequal: stages with slower devices hold fewer layers") {
  struct Case {
    const char* what;
    int layers, devices;
    const char *slow, *strategy;
    std::vector<int> stage_layers;
    double longest_ms;  // of a stage, for one micro-batch
  };
  for (const Case& c : std::vector<Case>{
           {"without the key", 9, 2, "slow = [{device = 1, factor = 0.5}]", "pipeline = 2", {4, 5}, 30},
           {"the last stage at half speed",
            9,
            2,
            "slow = [{device = 1, factor = 0.5}]",
            "pipeline = 2\nstages_by = \"speed\"",
            {6, 3},
            18},
           {"the first stage at half speed",
            9,
            2,
            "slow = [{device = 0, factor = 0.5}]",
            "pipeline = 2\nstages_by = \"speed\"",
            {3, 6},
            18},
           {"each stage half as fast as the one before",
            14,
            3,
            "slow = [{device = 1, factor = 0.5}, {device = 2, factor = 0.25}]",
            "pipeline = 3\nstages_by = \"speed\"",
            {8, 4, 2},
            24},
           {"the slower of two replicas counts",
            9,
            4,
            "slow = [{device = 3, factor = 0.5}]",
            "pipeline = 2\ndata = 2\nstages_by = \"speed\"",
            {6, 3},
            18},
           {"placed the other way, it is another stage",
            8,
            4,
            "slow = [{device = 2, factor = 0.6}]",
            "pipeline = 2\ndata = 2\nplacement = [\"pipeline\", \"data\"]\nstages_by = \"speed\"",
            {3, 5},
            15},
           {"equal devices", 8, 2, "", "pipeline = 2\nstages_by = \"speed\"", {4, 4}, 12}}) {
    CAPTURE(c.what);
    constexpr int kMicrobatches = 16;
    const int stages = static_cast<int>(c.stage_layers.size());
    const UnequalOutcome run = unequal(layers_of_3_ms(c.layers), c.devices, c.slow,
                                       8 * kMicrobatches * c.devices / stages, c.strategy);
    CHECK(run.plan.stage_layers == c.stage_layers);
    // At least the slowest stage's passes, at most with the bubble of stages that all take as long.
    CHECK(run.metrics.step_time_s >= 0.999e-3 * kMicrobatches * c.longest_ms);
    CHECK(run.metrics.step_time_s <= 1.001e-3 * (kMicrobatches + stages - 1) * c.longest_ms);
  }
}

TEST_CASE("unequal: nodes with an older device get fewer layers, and no other cut is faster") {
  const std::string model =
      "transformer = {layers = 12, hidden = 1024, heads = 16, vocabulary = 8000, "
      "sequence_length = 512, positions = 512}";
  const std::string group = "group = [{nodes = 1, device = \"v100\"}]\n";
  const auto run = [&](const std::string& strategy) {
    return unequal(model + "\n", 1, group, 512, "pipeline = 2\n" + strategy);
  };
  const UnequalOutcome by_speed = run("stages_by = \"speed\"");
  REQUIRE(by_speed.plan.stage_layers.size() == 2);
  CHECK(by_speed.plan.stage_layers[0] > by_speed.plan.stage_layers[1]);
  const int layers = by_speed.plan.stage_layers[0] + by_speed.plan.stage_layers[1];
  double least = 1e300;
  for (int first = 7; first < layers; ++first)
    least = std::min(least,
                     run(fmt::format("stage_layers = [{}, {}]", first, layers - first)).metrics.step_time_s);
  CHECK(by_speed.metrics.step_time_s <= 1.005 * least);
}

TEST_CASE("unequal: replicas take the time of all samples over the sum of their speeds") {
  struct Case {
    const char *slow, *strategy;
    int devices;
    double longest_samples;  // of a replica at full speed, that take as long as the slowest replica's
  };
  // Eight samples each take a device at full speed 27 ms.
  for (const Case& c : std::vector<Case>{
           {"slow = [{device = 1, factor = 0.3333333333333333}]", "", 2, 24},
           {"slow = [{device = 1, factor = 0.3333333333333333}]", "batch_by = \"speed\"", 2,
            16 / (1 + 1. / 3)},
           {"slow = [{device = 1, factor = 0.3333333333333333}]", "batch_by = \"speed\"\nmoved_samples = 1",
            2, 21},
           {"slow = [{device = 0, factor = 0.5}, {device = 3, factor = 0.5}]", "batch_by = \"speed\"", 4, 11},
           {"slow = [{device = 2, factor = 0.1}]", "batch_by = \"speed\"", 4, 11},
           {"", "batch_by = \"speed\"", 4, 8}})
    for (const char* sync : {"", "gradients = \"parameter-server\""}) {
      CAPTURE(c.slow, c.strategy, sync);
      constexpr int kMicrobatches = 4;
      const auto run = [&](bool fold) {
        return unequal(layers_of_3_ms(9), c.devices, c.slow, 8 * kMicrobatches * c.devices,
                       fmt::format("data = {}\n{}\n{}", c.devices, c.strategy, sync), fold);
      };
      const UnequalOutcome folded = run(true), whole = run(false);
      CHECK(folded.metrics.step_time_s ==
            Approx(kMicrobatches * 27e-3 * c.longest_samples / 8).epsilon(1e-3));
      CHECK(folded.metrics.step_time_s == Approx(whole.metrics.step_time_s).epsilon(1e-9));
      CHECK(folded.plan.schedule->samples == 8 * kMicrobatches * c.devices);
    }
}

TEST_CASE("unequal: what a replica sends, keeps and computes follows its samples") {
  const std::string model =
      "transformer = {layers = 4, hidden = 512, heads = 8, vocabulary = 8000, "
      "sequence_length = 512, positions = 512}\n";
  const std::string slow = "slow = [{device = 1, factor = 0.5}]";
  for (const char* mesh : {"data = 4\n", "data = 2\npipeline = 2\n", "data = 2\ntensor = 2\n",
                           "data = 2\ntensor = 2\nsequence_parallel = true\n",
                           "data = 2\npipeline = 2\nschedule = \"zb-h1\"\n"}) {
    CAPTURE(mesh);
    const std::string base = fmt::format("{}placement = [\"tensor\", \"data\", \"pipeline\"]\n", mesh);
    const std::string speed = base + "batch_by = \"speed\"\n";
    const UnequalOutcome equal = unequal(model, 4, slow, 256, base),
                         folded = unequal(model, 4, slow, 256, speed),
                         whole = unequal(model, 4, slow, 256, speed, false);
    CHECK(folded.metrics.step_time_s < 0.85 * equal.metrics.step_time_s);
    CHECK(folded.metrics.step_time_s == Approx(whole.metrics.step_time_s).epsilon(1e-9));
    CHECK(folded.metrics.memory.total == Approx(whole.metrics.memory.total).epsilon(1e-9));
    CHECK(folded.metrics.memory.activations > 1.1 * equal.metrics.memory.activations);
    // The samples of all replicas together are those of equal ones.
    CHECK(folded.metrics.network_bytes_per_step ==
          Approx(equal.metrics.network_bytes_per_step).epsilon(1e-9));
    CHECK(folded.metrics.model_tflops_per_device * folded.metrics.step_time_s ==
          Approx(equal.metrics.model_tflops_per_device * equal.metrics.step_time_s).epsilon(1e-9));
  }
}
