// Tests that transformers on real ranks with randomly drawn axes learn what a single rank learns.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "backend/host/host_executor.hpp"
#include "backend/host/launch.hpp"
#include "backend/runs/real_run.hpp"
#include "backend/training/training_workload.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse;

namespace {

// All sizes are divisible by 2 and 3; variants with experts have 6 of them, 2 per token.
constexpr const char* kBase = R"([model.transformer]
layers = 4
hidden = 24
heads = 6
feed_forward = 48
vocabulary = 48
sequence_length = 24
dropout = false
[training]
global_batch = 24
micro_batch = 2
precision = "fp32"
optimizer = "momentum"
[cluster]
preset = "cpu-cluster"
[run]
steps = 4
warmup = 0
learning_rate = 0.3
)";

using Settings = std::vector<std::string>;

// A variant of the model. Keys of experts in [strategy] are only allowed if the model has experts.
struct Variant {
  Settings settings;
  bool mixture = false;
};
const Variant kVariants[] = {
    {{}, false},
    {{"model.transformer.dropout=true"}, false},
    {{"model.transformer.rotary=true", "model.transformer.gated=true", "model.transformer.biases=false",
      "model.transformer.tied_embeddings=false", "model.transformer.kv_heads=3",
      "model.transformer.qk_norm=true"},
     false},
    {{"model.transformer.biases=false", "model.transformer.experts=6",
      "model.transformer.experts_per_token=2"},
     true},
    {{"model.transformer.rotary=true", "model.transformer.gated=true", "model.transformer.biases=false",
      "model.transformer.experts=6", "model.transformer.experts_per_token=2",
      "model.transformer.shared_expert=12", "model.transformer.shared_expert_gate=false"},
     true},
};

class Draw {
public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool maybe() { return below(2) == 0; }
  template <std::size_t n>
  const char* one_of(const char* const (&all)[n]) {
    return all[below(n)];
  }

  // Draws keys of [strategy] and others for `ranks` ranks; the reader may refuse them.
  Settings axes(int ranks, bool mixture) {
    std::map<std::string, int> degrees = {{"data", 1}, {"tensor", 1}, {"context", 1}, {"pipeline", 1}};
    const char* const names[] = {"data", "tensor", "context", "pipeline"};
    for (int left = ranks, prime = 2; left > 1;) {
      if (left % prime != 0) {
        ++prime;
        continue;
      }
      degrees[one_of(names)] *= prime;
      left /= prime;
    }
    Settings settings = {fmt::format("cluster.nodes={}", ranks)};
    const auto set = [&](const std::string& key, const std::string& value) {
      settings.push_back("strategy." + key + "=" + value);
    };
    for (const auto& [axis, degree] : degrees) set(axis, fmt::format("{}", degree));
    if (degrees["tensor"] > 1 && maybe()) set("sequence_parallel", "true");
    if (degrees["tensor"] > 1 && maybe()) set("tensor_overlap", "\"weight-gradients\"");
    if (degrees["tensor"] > 1 && degrees["pipeline"] > 1 && maybe()) set("scatter_gather", "true");
    if (degrees["pipeline"] > 1 && maybe()) set("overlap_passes", "true");
    if (degrees["context"] > 1) {
      const char* const kinds[] = {"\"ring\"", "\"all-gather\"", "\"all-to-all\""};
      set("context_kind", one_of(kinds));
      if (maybe()) set("zigzag", "false");
    }
    if (mixture) {
      const int expert[] = {1, 2, 3, 6};
      set("expert", fmt::format("{}", expert[below(4)]));
      if (maybe()) set("expert_tensor", "1");
      set("capacity_factor", "3");
    }
    if (degrees["pipeline"] > 1) {
      const char* const schedules[] = {"\"gpipe\"", "\"1f1b\"",  "\"interleaved\"", "\"breadth-first\"",
                                       "\"zb-h1\"", "\"zb-h2\"", "\"zb-v\"",        "\"dualpipe-v\""};
      const std::string schedule = one_of(schedules);
      set("schedule", schedule);
      if (schedule == "\"interleaved\"" || schedule == "\"breadth-first\"") set("virtual_stages", "2");
    }
    const char* const shards[] = {
        "", "", "zero_stage=1", "zero_stage=2", "zero_stage=3", "fsdp=\"full\"", "fsdp=\"hybrid\""};
    if (const std::string chosen = one_of(shards); !chosen.empty()) settings.push_back("strategy." + chosen);
    if (settings.back() == "strategy.fsdp=\"hybrid\"" && maybe()) set("shard_degree", "2");
    if (maybe()) set("bucket_mb", "0.02");
    const char* const placements[] = {"", R"(["tensor", "context", "pipeline", "data"])",
                                      R"(["context", "tensor", "data", "pipeline"])"};
    if (const std::string chosen = one_of(placements); !chosen.empty()) set("placement", chosen);
    const char* const recompute[] = {"\"none\"", "\"selective\"", "\"operators\"", "\"full\""};
    settings.push_back(std::string("training.recompute=") + one_of(recompute));
    return settings;
  }

private:
  std::mt19937_64 random_;
};

Scenario read(const Settings& model, const Settings& axes) {
  Settings all = model;
  all.insert(all.end(), axes.begin(), axes.end());
  return read_scenario_text(kBase, "random.toml", all);
}

// Trains on ranks that are child processes and returns the losses, which rank 0 reports.
std::vector<double> train(const Scenario& scenario) {
  const Plan plan = write_schedule(scenario);
  const test::Scratch scratch;
  LaunchOptions options;
  options.ranks = plan.schedule->ranks();
  RealRunOptions run;
  run.check_replicas = true;
  launch(options, [&](Transport& transport) {
    const auto result = run_rank(scenario, plan, transport, host_executor(), run);
    if (!result) return;
    if (!result->not_trained.empty()) throw RunError(result->not_trained);
    if (result->replicas_equal == false) throw RunError("replicas differ");
    (void)scratch.write("losses", nlohmann::json(result->losses).dump());
  });
  return nlohmann::json::parse(test::read_file(scratch.path("losses"))).get<std::vector<double>>();
}

}  // namespace

TEST_CASE("transformers on 2 to 8 ranks with random axes train as on one") {
  constexpr int kCases = testing::kSanitized ? 4 : 24;
  Draw draw(6);
  std::map<const Variant*, std::vector<double>> alone;
  std::map<std::string, int> drawn;  // by key: number of cases that have it
  int done = 0;
  for (int tries = 0; done < kCases; ++tries) {
    REQUIRE(tries < 1000);
    const Variant& model = kVariants[draw.below(std::size(kVariants))];
    const int ranks[] = {2, 3, 4, 6, 8, 8};
    const Settings axes = draw.axes(ranks[draw.below(6)], model.mixture);
    std::string told = fmt::format("model {}:", &model - kVariants);
    for (const std::string& setting : axes) told += " " + setting;
    CAPTURE(told);
    std::optional<Scenario> scenario;
    try {
      scenario = read(model.settings, axes);
      if (!why_not_trained(*scenario, *write_schedule(*scenario).schedule, true).empty()) continue;
    } catch (const InputError&) {
      continue;  // the reader refuses axes that do not fit
    }
    const std::vector<double> losses = train(*scenario);
    ++done;
    for (const std::string& setting : axes) ++drawn[setting];
    std::vector<double>& expected = alone[&model];
    if (expected.empty()) {
      expected = train(read(model.settings, {"cluster.nodes=1"}));
      CHECK(expected.back() < 0.98 * expected.front());  // it learns
    }
    REQUIRE(losses.size() == expected.size());
    double worst = 0;
    for (std::size_t step = 0; step < losses.size(); ++step)
      worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
    CHECK(worst < 1e-5);
  }
  if (testing::kSanitized) return;
  // The drawn axes depend only on the seed.
  for (const char* some : {"strategy.context_kind=\"ring\"", "strategy.context_kind=\"all-to-all\"",
                           "strategy.zigzag=false", "strategy.sequence_parallel=true",
                           "strategy.scatter_gather=true", "strategy.expert=2", "strategy.expert_tensor=1",
                           "strategy.zero_stage=3", "strategy.fsdp=\"hybrid\"", "strategy.schedule=\"zb-v\"",
                           "strategy.overlap_passes=true", "strategy.tensor_overlap=\"weight-gradients\""}) {
    CAPTURE(some);
    CHECK(drawn[some] > 0);
  }
}
