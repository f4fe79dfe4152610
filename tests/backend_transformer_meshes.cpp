// Tests that a transformer trains as on a single rank if batch, layers and tensors are sharded over a device
// mesh.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/backend_run.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::test;

namespace {

// With these learning rates a wrong gradient shows within a few steps.
constexpr const char* kModel = R"([model.transformer]
layers = 4
hidden = 32
heads = 4
feed_forward = 64
vocabulary = 64
sequence_length = 16
dropout = false
[training]
global_batch = 16
micro_batch = 2
precision = "fp32"
optimizer = "momentum"
[cluster]
preset = "cpu-cluster"
[run]
steps = 8
warmup = 0
learning_rate = 0.3
)";
constexpr const char* kGpt = "";
constexpr const char* kDropout = "dropout=true";
constexpr const char* kLlama =
    "rotary=true gated=true biases=false tied_embeddings=false kv_heads=2 qk_norm=true";
constexpr const char* kMixtral =
    "rotary=true gated=true biases=false tied_embeddings=false experts=4 experts_per_token=2";

constexpr const char* kShared =
    "gated=true biases=false experts=4 experts_per_token=2 shared_expert=32 shared_expert_gate=false "
    "dropout=true";

struct Case {
  const char* model;
  const char* settings;
  bool representative = false;  // runs under sanitizers, too
};
constexpr Case kCases[] = {
    {kGpt, "data=2 bucket_mb=0.02"},
    {kGpt, "tensor=4 sequence_parallel=true"},
    {kGpt, "pipeline=2 recompute=full", true},
    {kGpt, "data=2 tensor=2 pipeline=2 sequence_parallel=true", true},
    {kGpt, "pipeline=2 schedule=interleaved virtual_stages=3"},
    {kGpt, "data=2 pipeline=2 schedule=zb-v"},
    {kGpt, "data=2 zero_stage=2"},
    {kDropout, "data=2 tensor=2 pipeline=2 sequence_parallel=true recompute=full"},
    {kDropout, "tensor=4"},
    {kGpt, "data=2 pipeline=2 zero_stage=1 bucket_mb=0.02"},
    {kGpt, "data=2 tensor=2 pipeline=2 sequence_parallel=true zero_stage=3", true},
    {kLlama, "tensor=4 sequence_parallel=true"},
    {kLlama, "tensor=4 pipeline=2 recompute=selective"},
    {kLlama, "data=2 pipeline=2 schedule=dualpipe-v recompute=full"},
    {kLlama, "data=2 tensor=2 pipeline=2 sequence_parallel=true schedule=zb-h1 zero_stage=3", true},
    {kLlama, "data=2 pipeline=2 schedule=breadth-first virtual_stages=2 fsdp=full"},
    {kLlama, "data=2 tensor=2 gradients=parameter-server"},
    {kGpt, "context=4 context_kind=all-gather"},
    {kGpt, "context=2 tensor=2 pipeline=2 context_kind=all-gather sequence_parallel=true schedule=zb-h1",
     true},
    {kGpt, "data=2 context=2 pipeline=2 context_kind=all-to-all zero_stage=1"},
    {kLlama, "context=4 context_kind=all-to-all"},
    {kGpt, "tensor=4 sequence_parallel=true tensor_overlap=weight-gradients"},
    {kGpt, "context=2 pipeline=2 schedule=dualpipe-v overlap_passes=true recompute=selective"},
    {kLlama,
     "data=2 tensor=2 pipeline=2 sequence_parallel=true schedule=dualpipe-v overlap_passes=true "
     "tensor_overlap=weight-gradients recompute=selective"},
    {kLlama, "context=2 tensor=2 context_kind=all-to-all sequence_parallel=true zero_stage=3", true},
    {kMixtral, "data=2 tensor=2 zero_stage=3"},
    {kMixtral, "tensor=2 pipeline=2 schedule=zb-h1", true},
    {kMixtral, "context=2 data=2 context_kind=all-gather"},
    {kMixtral, "data=4 expert=2 capacity_factor=2 bucket_mb=0.02", true},
    {kMixtral, "data=2 expert=2 capacity_factor=2 zero_stage=2", true},
    {kMixtral, "data=4 expert=2 capacity_factor=2 zero_stage=3"},
    {kMixtral, "data=2 expert=2 capacity_factor=2 fsdp=hybrid"},  // in shards of 1
    {kMixtral,
     "data=4 expert=2 capacity_factor=2 fsdp=hybrid shard_degree=2"},  // only dense weights in shards
    {kMixtral, "data=2 tensor=2 expert=4 expert_tensor=1 capacity_factor=2 pipeline=2 schedule=zb-h1"},
    {kMixtral, "tensor=4 expert=2 expert_tensor=1 capacity_factor=2"},
    {kMixtral,
     "context=2 tensor=2 data=2 expert=4 context_kind=all-to-all sequence_parallel=true "
     "expert_tensor=1 capacity_factor=2"},
    {kShared, "data=2 tensor=2 expert=2 sequence_parallel=true capacity_factor=2"},
    {kGpt, "context=4 zigzag=false", true},
    {kLlama, "context=4", true},
    {kDropout, "context=2 tensor=2 pipeline=2 sequence_parallel=true recompute=selective"},
    {kGpt, "context=2 data=2 pipeline=2 schedule=zb-v zero_stage=2", true},
    {kMixtral, "context=2 data=2 expert=4 capacity_factor=2", true},
};

nlohmann::json train_mesh(const std::string& model, const std::string& settings) {
  const Scratch scratch;
  std::string arguments = "run --format json --check-replicas " + scratch.write("gpt.toml", kModel);
  int ranks = 1;
  const auto add = [&](const std::string& section, const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "data" || key == "context" || key == "tensor" || key == "pipeline") ranks *= std::stoi(value);
    const bool text =
        value != "true" && value != "false" && value.find_first_not_of("0123456789.") != std::string::npos;
    arguments += " --set '" + section + key + "=" + (text ? "\"" + value + "\"" : value) + "'";
  };
  std::istringstream of_model(model), of_strategy(settings);
  for (std::string word; of_model >> word;) add("model.transformer.", word);
  for (std::string word; of_strategy >> word;)
    add(word.starts_with("recompute") ? "training." : "strategy.", word);
  const Outcome outcome =
      run_program("rehearse-run", arguments + " --set cluster.nodes=" + std::to_string(ranks));
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  nlohmann::json measured = nlohmann::json::parse(outcome.out)["measured"];
  if (!measured.contains("losses")) FAIL("nothing was learned: " << measured["notes"].dump());
  return measured;
}

}  // namespace

TEST_CASE("a transformer on many ranks trains as on one") {
  std::map<std::string, std::vector<double>> alone;
  for (const Case& c : kCases) {
    if (rehearse::testing::kSanitized && !c.representative) continue;
    CAPTURE(c.model, c.settings);
    std::vector<double>& expected = alone[c.model];
    if (expected.empty()) {
      expected = train_mesh(c.model, "")["losses"].get<std::vector<double>>();
      REQUIRE(expected.size() == 8);
      CHECK(expected.back() < 0.95 * expected.front());  // it learns
    }
    const nlohmann::json measured = train_mesh(c.model, c.settings);
    const auto losses = measured["losses"].get<std::vector<double>>();
    REQUIRE(losses.size() == expected.size());
    double worst = 0;
    for (std::size_t step = 0; step < losses.size(); ++step)
      worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
    CHECK(worst < 1e-5);
    if (std::string(c.settings).find("data=") != std::string::npos)
      CHECK(measured["gradients_identical"].get<bool>());
  }
}

TEST_CASE("the shipped small GPT learns the chain that its tokens come from", "[release]") {
  const Outcome outcome = run_program("rehearse-run", std::string("run --format json ") + REHEARSE_TESTS_DIR +
                                                          "/../simulator/scenarios/small-gpt.toml");
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const auto losses = nlohmann::json::parse(outcome.out)["measured"]["losses"].get<std::vector<double>>();
  REQUIRE(losses.size() >= 20);
  CHECK(losses.front() == Approx(std::log(64.0)).epsilon(0.05));
  CHECK(losses.back() < 0.5 * losses.front());
}
