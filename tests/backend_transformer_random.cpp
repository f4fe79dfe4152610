// Tests that transformers on real ranks with randomly drawn strategies learn what a single rank learns, for
// every key of [strategy] that real ranks carry out and a transformer can have. By hand, for combinations of
// two keys:
//   REHEARSE_INPUTS=200 build/bin/test_backend "transformers on 2 to 8 ranks*"
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
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
    settings_ = {fmt::format("cluster.nodes={}", ranks)};
    for (const auto& [axis, degree] : degrees) set(axis, fmt::format("{}", degree));
    if (degrees["tensor"] > 1 && maybe()) set("sequence_parallel", "true");
    if (degrees["tensor"] > 1 && maybe()) set("tensor_overlap", "\"weight-gradients\"");
    if (degrees["tensor"] > 1 && degrees["pipeline"] > 1 && maybe()) set("scatter_gather", "true");
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
    if (degrees["pipeline"] > 1) draw_pipeline(degrees["pipeline"]);
    draw_gradients();
    const char* const placements[] = {"", R"(["tensor", "context", "pipeline", "data"])",
                                      R"(["context", "tensor", "data", "pipeline"])"};
    if (const std::string chosen = one_of(placements); !chosen.empty()) set("placement", chosen);
    const char* const recompute[] = {"\"none\"", "\"selective\"", "\"operators\"", "\"full\""};
    settings_.push_back(std::string("training.recompute=") + one_of(recompute));
    return settings_;
  }

private:
  void set(const std::string& key, const std::string& value) {
    settings_.push_back("strategy." + key + "=" + value);
  }

  void draw_pipeline(int stages) {
    const char* const schedules[] = {"\"gpipe\"", "\"1f1b\"",  "\"interleaved\"", "\"breadth-first\"",
                                     "\"zb-h1\"", "\"zb-h2\"", "\"zb-v\"",        "\"dualpipe-v\""};
    const std::string schedule = one_of(schedules);
    set("schedule", schedule);
    const bool loops = schedule == "\"interleaved\"" || schedule == "\"breadth-first\"";
    if (loops) set("virtual_stages", "2");
    if (maybe()) set("overlap_passes", "true");
    if (maybe()) set("blocking_p2p", "true");
    if (stages == 2 && !loops && maybe()) set("stage_layers", "[2, 4]");
  }

  void draw_gradients() {
    const char* const algorithms[] = {"", "\"tree\"", "\"recursive-doubling\"",
                                      "\"halving-doubling\""};
    if (const std::string chosen = one_of(algorithms); !chosen.empty()) set("all_reduce", chosen);
    if (below(3) == 0) set("chunk_kb", "1");
    if (below(3) == 0) set("channels", "2");
    if (maybe()) set("bucket_mb", "0.02");
    if (below(3) == 0) set("overlap", "false");
    switch (below(10)) {
      case 0:
        return set("gradients", "\"parameter-server\"");
      case 1:
        set("gradients", "\"parameter-server\"");
        set("parameter_server.servers", "2");
        return set("parameter_server.placement", "\"colocated\"");
      case 2:
        return set("fusion_mb", "1");
      case 3:
        return set("bucket_copies", "\"in-out\"");
      case 4:
        return set("zero_stage", "1");
      case 5:
        return set("zero_stage", "2");
      case 6:
        set("zero_stage", "3");
        break;
      case 7:
        set("fsdp", "\"full\"");
        break;
      case 8:
        set("fsdp", "\"hybrid\"");
        if (maybe()) set("shard_degree", "2");
        break;
      default:
        return;
    }
    if (maybe()) set("reshard_after_forward", "false");
    if (below(3) == 0) set("prefetch", "0");
  }

  std::mt19937_64 random_;
  Settings settings_;
};

// A value of a key of [strategy] that changes what the ranks do, alone or beside others.
struct Feature {
  const char* name;
  bool (*in)(const Scenario&, const Settings&);
};

bool drawn(const Settings& settings, const char* setting) {
  return std::find(settings.begin(), settings.end(), std::string("strategy.") + setting) != settings.end();
}
template <PipelineSchedule schedule>
bool in_order(const Scenario& s, const Settings&) {
  return s.strategy.pipeline > 1 && s.strategy.schedule == schedule;
}
template <ContextKind kind>
bool in_context(const Scenario& s, const Settings&) {
  return s.strategy.context > 1 && s.strategy.context_kind == kind;
}
template <Algorithm algorithm>
bool sums_by(const Scenario& s, const Settings& settings) {
  const int groups = s.strategy.data * s.strategy.context;
  return groups > 2 && s.strategy.gradients == "all-reduce" && s.strategy.all_reduce == algorithm &&
         !drawn(settings, "zero_stage=2") && !drawn(settings, "zero_stage=3");
}

const Feature kFeatures[] = {
    {"data", [](const Scenario& s, const Settings&) { return s.strategy.data > 1; }},
    {"tensor", [](const Scenario& s, const Settings&) { return s.strategy.tensor > 1; }},
    {"sequence_parallel", [](const Scenario& s, const Settings&) { return s.strategy.sequence_parallel; }},
    {"tensor_overlap",
     [](const Scenario& s, const Settings&) { return s.strategy.tensor_overlap != TensorOverlap::none; }},
    {"scatter_gather of whole tensors",
     [](const Scenario& s, const Settings&) {
       return s.strategy.scatter_gather && s.strategy.tensor > 1 && s.strategy.pipeline > 1 &&
              !s.strategy.sequence_parallel;
     }},
    {"context_kind ring", in_context<ContextKind::ring>},
    {"context_kind all-gather", in_context<ContextKind::all_gather>},
    {"context_kind all-to-all", in_context<ContextKind::all_to_all>},
    {"zigzag = false",
     [](const Scenario& s, const Settings& all) {
       return in_context<ContextKind::ring>(s, all) && !s.strategy.zigzag;
     }},
    {"expert", [](const Scenario& s, const Settings&) { return s.strategy.expert > 1; }},
    {"expert_tensor", [](const Scenario& s,
                         const Settings&) { return s.strategy.expert_tensor == 1 && s.strategy.tensor > 1; }},
    {"placement",
     [](const Scenario&, const Settings& all) {
       return drawn(all, R"(placement=["context", "tensor", "data", "pipeline"])");
     }},
    {"schedule gpipe", in_order<PipelineSchedule::gpipe>},
    {"schedule 1f1b", in_order<PipelineSchedule::one_f_one_b>},
    {"schedule interleaved", in_order<PipelineSchedule::interleaved>},
    {"schedule breadth-first", in_order<PipelineSchedule::breadth_first>},
    {"schedule zb-h1", in_order<PipelineSchedule::zb_h1>},
    {"schedule zb-h2", in_order<PipelineSchedule::zb_h2>},
    {"schedule zb-v", in_order<PipelineSchedule::zb_v>},
    {"schedule dualpipe-v", in_order<PipelineSchedule::dualpipe_v>},
    {"stage_layers", [](const Scenario& s, const Settings&) { return !s.strategy.stage_layers.empty(); }},
    {"blocking_p2p", [](const Scenario& s, const Settings&) { return s.strategy.blocking_p2p; }},
    {"overlap_passes", [](const Scenario& s, const Settings&) { return s.strategy.overlap_passes; }},
    {"all_reduce ring", sums_by<Algorithm::ring>},
    {"all_reduce tree", sums_by<Algorithm::tree>},
    {"all_reduce halving-doubling", sums_by<Algorithm::halving_doubling>},
    {"all_reduce recursive-doubling", sums_by<Algorithm::recursive_doubling>},
    {"chunk_kb",
     [](const Scenario& s, const Settings&) { return s.strategy.chunk_bytes > 0 && s.strategy.data > 1; }},
    {"channels",
     [](const Scenario& s, const Settings&) { return s.strategy.channels > 1 && s.strategy.data > 1; }},
    {"bucket_mb", [](const Scenario& s,
                     const Settings& all) { return drawn(all, "bucket_mb=0.02") && s.strategy.data > 1; }},
    {"overlap = false",
     [](const Scenario& s, const Settings&) { return !s.strategy.overlap && s.strategy.data > 1; }},
    {"gradients parameter-server, colocated",
     [](const Scenario& s, const Settings&) {
       return s.strategy.gradients == "parameter-server" && s.strategy.parameter_server.servers == 2;
     }},
    {"gradients parameter-server, dedicated",
     [](const Scenario& s, const Settings&) {
       return s.strategy.gradients == "parameter-server" && s.strategy.parameter_server.servers == 1;
     }},
    {"fusion_mb", [](const Scenario&, const Settings& all) { return drawn(all, "fusion_mb=1"); }},
    {"bucket_copies",
     [](const Scenario& s, const Settings&) { return s.strategy.bucket_copies != BucketCopies::none; }},
    {"zero_stage 1", [](const Scenario&, const Settings& all) { return drawn(all, "zero_stage=1"); }},
    {"zero_stage 2", [](const Scenario&, const Settings& all) { return drawn(all, "zero_stage=2"); }},
    {"zero_stage 3", [](const Scenario&, const Settings& all) { return drawn(all, "zero_stage=3"); }},
    {"fsdp full", [](const Scenario&, const Settings& all) { return drawn(all, "fsdp=\"full\""); }},
    {"fsdp hybrid", [](const Scenario&, const Settings& all) { return drawn(all, "fsdp=\"hybrid\""); }},
    {"reshard_after_forward = false",
     [](const Scenario&, const Settings& all) { return drawn(all, "reshard_after_forward=false"); }},
    {"prefetch = 0", [](const Scenario&, const Settings& all) { return drawn(all, "prefetch=0"); }},
};
constexpr int kFeatureCount = static_cast<int>(std::size(kFeatures));

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

// A case that trains: its model, settings and features.
struct DrawnCase {
  const Variant* model = nullptr;
  Settings axes;
  std::optional<Scenario> scenario;
  std::set<int> features;
};

// Draws scenarios until one trains and has all of these features; empty after `most` draws.
std::optional<DrawnCase> draw_case(Draw& draw, const std::set<int>& wanted, int most) {
  for (int tries = 0; tries < most; ++tries) {
    DrawnCase made;
    made.model = &kVariants[draw.below(std::size(kVariants))];
    const int ranks[] = {2, 3, 4, 6, 8, 8};
    made.axes = draw.axes(ranks[draw.below(6)], made.model->mixture);
    try {
      made.scenario = read(made.model->settings, made.axes);
      for (int f = 0; f < kFeatureCount; ++f)
        if (kFeatures[f].in(*made.scenario, made.axes)) made.features.insert(f);
      if (!std::includes(made.features.begin(), made.features.end(), wanted.begin(), wanted.end())) continue;
      if (!why_not_trained(*made.scenario, *write_schedule(*made.scenario).schedule, true).empty()) continue;
    } catch (const InputError&) {
      continue;  // the reader refuses axes that do not fit
    }
    return made;
  }
  return {};
}

}  // namespace

TEST_CASE("transformers on 2 to 8 ranks with random strategies train as on one") {
  const char* const asked = std::getenv("REHEARSE_INPUTS");
  const int by_hand = asked ? std::atoi(asked) : 0;
  Draw draw(6);
  std::map<const Variant*, std::vector<double>> alone;
  std::set<std::pair<int, int>> trained;  // combinations of two features, or of one with itself
  const auto run = [&](const DrawnCase& made) {
    std::string told = fmt::format("model {}:", made.model - kVariants);
    for (const std::string& setting : made.axes) told += " " + setting;
    CAPTURE(told);
    const std::vector<double> losses = train(*made.scenario);
    for (const int a : made.features)
      for (const int b : made.features) trained.insert({a, b});
    std::vector<double>& expected = alone[made.model];
    if (expected.empty()) {
      expected = train(read(made.model->settings, {"cluster.nodes=1"}));
      CHECK(expected.back() < 0.98 * expected.front());  // it learns
    }
    REQUIRE(losses.size() == expected.size());
    double worst = 0;
    for (std::size_t step = 0; step < losses.size(); ++step)
      worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
    CHECK(worst < 1e-5);
  };
  int done = 0;
  for (int f = 0; f < kFeatureCount && !(testing::kSanitized && done == 4); ++f) {
    if (trained.count({f, f}) > 0) continue;
    CAPTURE(kFeatures[f].name);
    const std::optional<DrawnCase> made = draw_case(draw, {f}, 5000);
    REQUIRE(made);
    run(*made);
    ++done;
  }
  for (int a = 0; a < kFeatureCount && done < by_hand; ++a)
    for (int b = a + 1; b < kFeatureCount && done < by_hand; ++b) {
      if (trained.count({a, b}) > 0) continue;
      if (const std::optional<DrawnCase> made = draw_case(draw, {a, b}, 500)) {
        run(*made);
        ++done;
      }
    }
  for (; done < by_hand; ++done) {
    const std::optional<DrawnCase> made = draw_case(draw, {}, 5000);
    REQUIRE(made);
    run(*made);
  }
  if (by_hand > 0)
    std::cout << fmt::format("{} scenarios trained, with {} of {} combinations of two values\n", done,
                             (trained.size() - kFeatureCount) / 2, kFeatureCount * (kFeatureCount - 1) / 2);
}
