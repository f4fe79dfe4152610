// Tests that every strategy that trains on processors gives the same losses on GPUs, however the GPU delays
// its work: the stand-in starts operations late at random, which exposes missing dependencies.
#ifdef REHEARSE_HAVE_CUDA

#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backend/cuda/cuda_executor.hpp"
#include "backend/host/launch.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;

namespace {

// Eight layers, four steps of 24 samples.
constexpr const char* kPerceptron = R"([model.multi_layer_perceptron]
widths = [24, 32, 28, 32, 20, 32, 24, 16, 12]
[training]
global_batch = 24
micro_batch = 4
precision = "fp32"
optimizer = "momentum"
[cluster]
preset = "cpu-cluster"
[run]
steps = 3
warmup = 1
)";

constexpr const char* kStrategies[] = {
    "nodes=1",
    "nodes=2 data=2",
    "nodes=2 data=2 bucket_mb=0.01",
    "nodes=2 data=2 overlap=false",
    "nodes=3 data=3 micro_batch=2 bucket_mb=0.01",
    "nodes=4 data=4 micro_batch=2",
    "nodes=2 pipeline=2",
    "nodes=2 pipeline=2 schedule=gpipe",
    "nodes=3 pipeline=3",
    "nodes=4 pipeline=4",
    "nodes=4 pipeline=4 schedule=gpipe",
    "nodes=2 pipeline=2 schedule=interleaved virtual_stages=2",
    "nodes=2 pipeline=2 schedule=interleaved virtual_stages=4",
    "nodes=4 pipeline=4 schedule=zb-h1",
    "nodes=2 pipeline=2 schedule=zb-h2",
    "nodes=2 pipeline=2 schedule=zb-v",
    "nodes=2 pipeline=2 schedule=dualpipe-v",
    "nodes=4 pipeline=2 data=2 micro_batch=2 schedule=zb-v",
    "nodes=4 tensor=2 pipeline=2 sequence_parallel=true schedule=zb-h1",
    "nodes=2 pipeline=2 blocking_p2p=true",
    "nodes=4 pipeline=2 data=2",
    "nodes=4 pipeline=2 data=2 bucket_mb=0.01",
    "nodes=4 pipeline=2 data=2 micro_batch=2 schedule=interleaved virtual_stages=2",
    "nodes=2 tensor=2",
    "nodes=2 tensor=2 sequence_parallel=true",
    "nodes=4 tensor=4 collectives=schedule",
    "nodes=4 tensor=2 data=2 bucket_mb=0.01",
    "nodes=4 tensor=2 pipeline=2 sequence_parallel=true cuda_graphs=true",
    "nodes=4 tensor=2 data=2 sequence_parallel=true gradients=parameter-server",
    "nodes=2 data=2 zero_stage=1 bucket_mb=0.01",
    "nodes=4 data=2 tensor=2 sequence_parallel=true zero_stage=3",
    "nodes=4 data=4 micro_batch=2 fsdp=hybrid shard_degree=2 cuda_graphs=true",
    "nodes=1 gradients=parameter-server",
    "nodes=2 data=2 gradients=parameter-server",
    "nodes=2 data=2 gradients=parameter-server parameter_server.servers=2",
    "nodes=2 data=2 gradients=parameter-server parameter_server.placement=colocated",
    "nodes=4 pipeline=2 data=2 gradients=parameter-server",
    "preset=p100x4-25gbe nodes=1 data=4 micro_batch=1 gradients=first-device",
    "preset=p100x4-25gbe nodes=1 data=4 micro_batch=2 gradients=first-device",
    "preset=p100x4-25gbe nodes=1 data=4 micro_batch=1 gradients=hierarchical-parameter-server",
    "nodes=4 data=4 micro_batch=2 collectives=schedule all_reduce=ring",
    "nodes=4 data=4 micro_batch=2 collectives=schedule all_reduce=tree bucket_mb=0.01",
    "nodes=4 data=4 micro_batch=2 collectives=schedule all_reduce=halving-doubling",
    "nodes=3 data=3 micro_batch=2 collectives=schedule all_reduce=halving-doubling chunk_kb=1",
    "nodes=4 data=4 micro_batch=2 collectives=schedule all_reduce=recursive-doubling",
    "nodes=3 data=3 micro_batch=2 collectives=schedule all_reduce=recursive-doubling chunk_kb=1",
    "preset=p100x4-25gbe nodes=2 data=8 micro_batch=1 collectives=schedule all_reduce=hierarchical",
    "nodes=2 data=2 cuda_graphs=true bucket_mb=0.01",
    "nodes=4 pipeline=2 data=2 cuda_graphs=true",
    "nodes=2 pipeline=2 schedule=interleaved virtual_stages=2 cuda_graphs=true",
    "nodes=2 pipeline=2 schedule=zb-v cuda_graphs=true",
    "nodes=2 data=2 gradients=parameter-server cuda_graphs=true",
    "nodes=4 kind=torus dims=[2,2] data=4 micro_batch=1 collectives=schedule all_reduce=torus",
};

// Sections of the keys that are not in [strategy].
constexpr std::pair<const char*, const char*> kSections[] = {
    {"node", "cluster."},
    {"preset=", "cluster."},
    {"kind=", "cluster."},
    {"dims=", "cluster."},
    {"micro_batch=", "training."},
    {"precision=", "training."},
    {"gradient_precision=", "training."},
    {"optimizer=", "training."},
    {"collectives=", "run."},
    {"cuda_graphs=", "run."},
};

// Turns "nodes=2 data=2" into overrides of the scenario.
std::vector<std::string> overrides(const std::string& words) {
  std::vector<std::string> all;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const std::size_t equals = word.find('=');
    std::string value = word.substr(equals + 1);
    if (std::isalpha(static_cast<unsigned char>(value[0])) != 0 && value != "true" && value != "false")
      value = "\"" + value + "\"";
    std::string section = "strategy.";
    for (const auto& [key, of] : kSections)
      if (word.starts_with(key)) section = of;
    all.push_back(section + word.substr(0, equals) + "=" + value);
  }
  return all;
}

// Turns "nodes=2 data=2" into arguments of rehearse-run.
std::string arguments(const std::string& words) {
  std::string text;
  for (const std::string& one : overrides(words)) text += " --set '" + one + "'";
  return text;
}

std::vector<double> losses_of(const test::Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const nlohmann::json result = nlohmann::json::parse(outcome.out).at("measured");
  if (!result.contains("losses")) FAIL("nothing was learned: " << result.at("notes").dump());
  return result.at("losses").get<std::vector<double>>();
}

void check_losses(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t step = 0; step < found.size(); ++step) {
    CAPTURE(step);
    CHECK(found[step] == Approx(expected[step]).epsilon(1e-5));
  }
}

// Trains in forked children, so that libraries are loaded only once. Returns the losses, which rank 0, also a
// child, passes on.
std::vector<double> train_in_children(const std::string& strategy, const std::string& seed) {
  const Scenario scenario = read_scenario_text(kPerceptron, "perceptron.toml", overrides(strategy));
  const Plan plan = write_schedule(scenario);
  const test::Scratch scratch;
  setenv("STAND_IN_SEED", seed.c_str(), 1);
  LaunchOptions options;
  options.ranks = plan.schedule->ranks();
  options.patience_s = 30;
  launch(options, [&](Transport& transport) {
    CudaOptions cuda;
    cuda.oversubscribe = true;
    cuda.patience_s = 20;
    cuda.graphs = scenario.run.cuda_graphs;
    cuda.message_tables = scenario.run.collectives == RealRun::Collectives::schedule;
    CudaChoice choice = cuda_executor(cuda, transport);
    if (!choice.refused.empty()) throw RunError(choice.refused);
    const auto result = run_rank(scenario, plan, transport, choice.executor);
    if (result) (void)scratch.write("losses", nlohmann::json(result->losses).dump());
  });
  return nlohmann::json::parse(test::read_file(scratch.path("losses"))).get<std::vector<double>>();
}

}  // namespace

TEST_CASE("rehearse-run trains every strategy on GPUs as on processors") {
  const test::Scratch scratch;
  const std::string run = "run --format json " + scratch.write("perceptron.toml", kPerceptron);
  const std::vector<double> expected =
      losses_of(test::run_program("rehearse-run", run + arguments("nodes=1")));
  CHECK(expected.back() < expected.front());
  for (const char* strategy : kStrategies) {
    CAPTURE(strategy);
    check_losses(
        losses_of(test::run_on_stand_in(
            "rehearse-run", run + " --device gpu --oversubscribe --patience 20" + arguments(strategy),
            "STAND_IN_DELAY_US=300")),
        expected);
  }
}

TEST_CASE("what is learned in other ways is learned alike on GPUs and on processors") {
  struct {
    const char* strategy;
    const char* only_gpus;
    double margin;  // relative
  } const cases[] = {
      {"nodes=2 data=2 gradients=local-sgd local_sgd.every=2", "", 1e-5},
      {"nodes=2 data=2 compression=fp16", "collectives=library", 1e-5},
      {"nodes=2 data=2 compression=one-bit optimizer=sgd", "", 1e-5},
      {"nodes=2 data=2 compression=top-k top_k_density=0.05 optimizer=sgd", "", 1e-5},
      {"nodes=2 data=2 compression=powersgd optimizer=sgd", "", 1e-5},
      {"nodes=4 data=2 pipeline=2 compression=one-bit optimizer=sgd", "", 1e-5},
      {"nodes=2 data=2 compression=top-k top_k_density=0.05 optimizer=sgd", "cuda_graphs=true", 1e-5},
      {"nodes=2 data=2 compression=powersgd optimizer=sgd", "cuda_graphs=true", 1e-5},
      {"nodes=1", "preset=hgx-h200 node.devices=1 nodes=1 precision=tf32", 1e-5},
      {"nodes=1", "preset=hgx-h200 node.devices=1 nodes=1 precision=bf16 gradient_precision=fp32", 0.05},
  };
  const test::Scratch scratch;
  const std::string run = "run --format json " + scratch.write("perceptron.toml", kPerceptron);
  for (const auto& c : cases) {
    CAPTURE(c.strategy, c.only_gpus);
    const std::vector<double> expected =
        losses_of(test::run_program("rehearse-run", run + arguments(c.strategy)));
    const std::vector<double> found = losses_of(test::run_on_stand_in(
        "rehearse-run",
        run + " --device gpu --oversubscribe --patience 20" + arguments(c.strategy) + arguments(c.only_gpus),
        "STAND_IN_DELAY_US=300"));
    REQUIRE(found.size() == expected.size());
    for (std::size_t step = 0; step < found.size(); ++step)
      CHECK(found[step] == Approx(expected[step]).epsilon(c.margin));
  }
}

// A transformer's operations are separate kernels; its tensors are exchanged like a perceptron's.
TEST_CASE("transformers are trained on GPUs as on processors") {
  constexpr const char* kTransformer = R"([model.transformer]
layers = 2
hidden = 16
heads = 4
kv_heads = 2
feed_forward = 24
vocabulary = 20
sequence_length = 8
dropout = false
[training]
global_batch = 8
micro_batch = 2
precision = "fp32"
optimizer = "momentum"
[cluster]
preset = "cpu-cluster"
[run]
steps = 3
warmup = 1
learning_rate = 0.3
)";
  constexpr const char* kLlama =
      " --set model.transformer.rotary=true --set model.transformer.gated=true --set "
      "model.transformer.qk_norm=true"
      " --set model.transformer.biases=false --set model.transformer.tied_embeddings=false";
  constexpr const char* kMixtral =
      " --set model.transformer.biases=false --set model.transformer.experts=4"
      " --set model.transformer.experts_per_token=2";
  struct {
    const char* model;
    const char* strategy;
  } const cases[] = {
      {"", "nodes=1"},
      {"", "nodes=4 tensor=2 pipeline=2 sequence_parallel=true"},
      {"", "nodes=2 pipeline=2 schedule=zb-v"},
      {"", "nodes=2 data=2 cuda_graphs=true"},
      {kLlama, "nodes=4 tensor=4 sequence_parallel=true"},
      {kLlama, "nodes=4 tensor=2 data=2 zero_stage=3"},
      {kMixtral, "nodes=2 tensor=2"},
      {kMixtral, "nodes=4 data=4 micro_batch=1 expert=2 capacity_factor=2 cuda_graphs=true"},
      {kMixtral, "nodes=4 data=2 tensor=2 expert=4 expert_tensor=1 capacity_factor=2 zero_stage=3"},
      {"", "nodes=2 context=2 cuda_graphs=true"},
      {kLlama, "nodes=4 context=2 pipeline=2 zigzag=false"},
      {" --set model.transformer.dropout=true", "nodes=2 tensor=2"},
  };
  const test::Scratch scratch;
  const std::string run = "run --format json " + scratch.write("transformer.toml", kTransformer);
  for (const auto& c : cases) {
    CAPTURE(c.model, c.strategy);
    const std::vector<double> expected =
        losses_of(test::run_program("rehearse-run", run + c.model + arguments("nodes=1")));
    CHECK(expected.back() < expected.front());
    check_losses(losses_of(test::run_on_stand_in(
                     "rehearse-run",
                     run + c.model + " --device gpu --oversubscribe --patience 20" + arguments(c.strategy),
                     "STAND_IN_DELAY_US=300")),
                 expected);
  }
}

namespace {

// Runs the hidden case below in a process on the stand-in, for a range of seeds.
void check_seeds(int first, int last) {
  const test::Outcome outcome = test::run_shell(
      "STAND_IN_DELAY_US=300 FIRST_SEED=" + std::to_string(first) + " LAST_SEED=" + std::to_string(last) +
      " LD_PRELOAD=" REHEARSE_STAND_IN " /proc/" + std::to_string(getpid()) + "/exe '[forked]'");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
}

}  // namespace

TEST_CASE("strategies and seeds", "[.][forked]") {
  const std::vector<double> expected = train_in_children("nodes=1", "0");
  for (const char* strategy : kStrategies)
    for (int seed = std::atoi(std::getenv("FIRST_SEED")); seed <= std::atoi(std::getenv("LAST_SEED"));
         ++seed) {
      CAPTURE(strategy, seed);
      check_losses(train_in_children(strategy, std::to_string(seed)), expected);
    }
}

TEST_CASE("losses are the same whatever the GPU does late, seed 1") {
  check_seeds(1, 1);
}

TEST_CASE("losses are the same whatever the GPU does late, seeds 2 to 8", "[.][seeds]") {
  check_seeds(2, 8);
}

#endif
