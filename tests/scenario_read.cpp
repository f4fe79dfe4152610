// Checks the meaning of a scenario file: defaults, derived degrees, precisions, servers, overrides.
#include <filesystem>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
namespace fs = std::filesystem;

namespace {

// Reads a scenario for two DGX A100 of 8 GPUs each; `lines` are appended.
Scenario with_lines(const std::string& lines, const std::vector<std::string>& overrides = {}) {
  return read_scenario_text(
      "[model]\npreset = \"bert-large\"\n[cluster]\npreset = \"dgx-a100\"\nnodes = 2\n" + lines,
      "lab/mine.toml", overrides);
}

}  // namespace

TEST_CASE("defaults are those that the design names") {
  auto s = with_lines("[training]\nglobal_batch = 64\n");
  CHECK(s.name == "mine");
  CHECK(s.training.micro_batch == 1);
  CHECK(s.training.sequence_length == 0);  // the model's own
  CHECK(s.run.bind == RealRun::Bind::none);
  CHECK(s.training.precision == Precision::bf16);
  CHECK(s.training.optimizer == Optimizer::adam);
  CHECK(s.training.recompute == Recompute::none);
  CHECK(s.strategy.data == 16);
  CHECK(s.strategy.pipeline == 1);
  CHECK(s.strategy.placement == std::vector<std::string>{"tensor", "context", "data", "pipeline"});
  CHECK(s.strategy.schedule == PipelineSchedule::one_f_one_b);
  CHECK(s.strategy.stage_layers.empty());
  CHECK_FALSE(s.strategy.blocking_p2p);
  CHECK(s.strategy.gradients == "all-reduce");
  CHECK(s.strategy.chunk_bytes == 0);
  CHECK(s.strategy.channels == 0);
  CHECK(s.strategy.bucket_bytes == 25 * 1048576.0);  // PyTorch DistributedDataParallel, bucket_cap_mb = 25
  CHECK(s.strategy.overlap);
  CHECK(s.engine.fidelity == Fidelity::automatic);
  CHECK(s.engine.protocol.kind == Protocol::nccl);
  CHECK(s.engine.fold);
  CHECK(s.steps == 1);
  CHECK(s.microbatches == 4);  // 64 / (1 x 16)
}

TEST_CASE("every key arrives where it belongs") {
  auto s = with_lines(R"(
[training]
global_batch = 96
micro_batch = 2
sequence_length = 128
precision = "fp16"
gradient_precision = "fp32"
activation_precision = "bf16"
optimizer = "momentum"
recompute = "selective"
[strategy]
data = 4
tensor = 1
context = 1
context_kind = "all-gather"
zigzag = false
expert = 1
pipeline = 4
placement = ["tensor", "pipeline", "context", "data"]
schedule = "gpipe"
virtual_stages = 1
stage_layers = [8, 6, 6, 6]
blocking_p2p = true
sequence_parallel = false
gradients = "parameter-server"
all_reduce = "ring"
chunk_kb = 512
channels = 8
bucket_mb = 1.5
overlap = false
zero_stage = 0
fsdp = "none"
prefetch = 0
fusion_mb = 0
cycle_ms = 0
[strategy.parameter_server]
servers = 2
placement = "colocated"
mode = "sync"
[simulation]
fidelity = "chunk"
protocol = "ideal"
steps = 3
fold = false
seed = 42
[run]
steps = 10
warmup = 2
seed = 1
compute = "timed"
bind = "core"
)");
  CHECK(s.training.sequence_length == 128);
  CHECK(s.training.precision == Precision::fp16);
  CHECK(s.training.gradient_precision == Precision::fp32);
  CHECK(s.training.activation_precision == Precision::bf16);
  CHECK(s.training.optimizer == Optimizer::momentum);
  CHECK(s.training.recompute == Recompute::selective);
  CHECK(s.strategy.data == 4);
  CHECK(s.strategy.pipeline == 4);
  CHECK(s.strategy.placement == std::vector<std::string>{"tensor", "pipeline", "context", "data"});
  CHECK(s.strategy.context_kind == ContextKind::all_gather);
  CHECK_FALSE(s.strategy.zigzag);
  CHECK(s.strategy.schedule == PipelineSchedule::gpipe);
  CHECK(s.strategy.stage_layers == std::vector<int>{8, 6, 6, 6});
  CHECK(s.strategy.blocking_p2p);
  CHECK(s.run.bind == RealRun::Bind::core);
  CHECK(s.strategy.gradients == "parameter-server");
  CHECK(s.strategy.chunk_bytes == 524288);
  CHECK(s.engine.chunk_bytes == 524288);
  CHECK(s.strategy.channels == 8);
  CHECK(s.strategy.bucket_bytes == 1.5 * 1048576);
  CHECK_FALSE(s.strategy.overlap);
  CHECK(s.strategy.parameter_server.servers == 2);
  CHECK(s.strategy.parameter_server.placement == ParameterServer::Placement::colocated);
  CHECK(s.engine.fidelity == Fidelity::chunk);
  CHECK(s.engine.protocol.kind == Protocol::ideal);
  CHECK_FALSE(s.engine.fold);
  CHECK(s.steps == 3);
  CHECK(s.microbatches == 12);  // 96 / (2 x 4)
}

TEST_CASE("a protocol brings its own keys") {
  const std::string training = "[training]\nglobal_batch = 64\n[simulation]\nprotocol = ";
  CHECK(with_lines(training + "\"tcp\"\n").engine.protocol.frame_overhead_bytes == 38);
  const Scenario shaped = with_lines(training + "\"tcp\"\nframe_overhead_bytes = 14\n");
  CHECK(shaped.engine.protocol.kind == Protocol::tcp);
  CHECK(shaped.engine.protocol.frame_overhead_bytes == 14);
  // A link profile is looked up beside the scenario: here, in the folder of tests.
  const Scenario linked =
      read_scenario_text("[model]\npreset = \"bert-large\"\n[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n" +
                             training + "\"measured\"\nlink_profile = \"measured-links.toml\"\n",
                         std::string(REHEARSE_TESTS_DIR) + "/mine.toml");
  CHECK(linked.engine.protocol.kind == Protocol::measured);
  REQUIRE(linked.engine.protocol.links);
  CHECK(linked.engine.protocol.links->title == "made up for tests");
}

TEST_CASE("a degree that is left out follows from the devices") {
  struct Case {
    std::string strategy;
    int data, pipeline;
  };
  const Case cases[] = {{"", 16, 1},
                        {"data = 16", 16, 1},
                        {"data = 2", 2, 8},
                        {"pipeline = 4", 4, 4},
                        {"pipeline = 16", 1, 16},
                        {"data = 8\npipeline = 2", 8, 2}};
  for (const auto& c : cases) {
    CAPTURE(c.strategy);
    auto s = with_lines("[training]\nglobal_batch = 64\n[strategy]\n" + c.strategy + "\n");
    CHECK(s.strategy.data == c.data);
    CHECK(s.strategy.pipeline == c.pipeline);
    CHECK(s.strategy.data * s.strategy.pipeline == s.cluster->devices());
  }
}

TEST_CASE("precision: the best that the device has, sent as it is stored") {
  struct Case {
    std::string cluster, precision;
    Precision training, sent;
  };
  const Case cases[] = {
      {"dgx-a100", "", Precision::bf16, Precision::bf16},
      {"dgx1-v100", "", Precision::fp16, Precision::fp16},
      {"cpu-cluster", "", Precision::fp32, Precision::fp32},
      {"dgx-a100", "tf32", Precision::tf32, Precision::fp32},
      {"dgx-h100", "fp8", Precision::fp8, Precision::bf16},
      {"dgx-b200", "mxfp8", Precision::mxfp8, Precision::bf16},
      {"hgx-b300", "nvfp4", Precision::nvfp4, Precision::bf16},
      {"dgx-a100", "fp16", Precision::fp16, Precision::fp16},
  };
  for (const auto& c : cases) {
    CAPTURE(c.cluster, c.precision);
    std::vector<std::string> overrides = {"cluster.preset=" + c.cluster};
    if (!c.precision.empty()) overrides.push_back("training.precision=" + c.precision);
    auto s = with_lines("[training]\nglobal_batch = 1024\n", overrides);
    CHECK(s.training.precision == c.training);
    CHECK(s.training.gradient_precision == c.sent);
    CHECK(s.training.activation_precision == c.sent);
  }
}

TEST_CASE("dedicated servers bring nodes of their own") {
  std::string servers =
      "[training]\nglobal_batch = 64\n[strategy]\ngradients = \"parameter-server\"\n"
      "[strategy.parameter_server]\nservers = 3\n";
  CHECK(with_lines(servers).cluster->server_nodes() == 3);
  CHECK(with_lines(servers).cluster->devices() == 16);
  CHECK(with_lines(servers, {"cluster.server_nodes=5"}).cluster->server_nodes() == 5);
  CHECK(with_lines(servers,
                   {"strategy.parameter_server.placement=colocated", "strategy.parameter_server.servers=2"})
            .cluster->server_nodes() == 0);
  CHECK(with_lines(servers, {"strategy.gradients=all-reduce"}).cluster->server_nodes() == 0);

  const std::string behind_nodes =
      "[training]\nglobal_batch = 64\n[strategy]\ngradients = \"hierarchical-parameter-server\"\n";
  const std::string count = "strategy.hierarchical_parameter_server.servers=3";
  CHECK(with_lines(behind_nodes).cluster->server_nodes() == 1);
  CHECK(with_lines(behind_nodes, {count}).cluster->server_nodes() == 3);
  CHECK(with_lines(behind_nodes, {count, "cluster.server_nodes=5"}).cluster->server_nodes() == 5);
  CHECK(with_lines(behind_nodes, {"strategy.hierarchical_parameter_server.placement=colocated"})
            .cluster->server_nodes() == 0);
}

TEST_CASE("the first bucket is small unless the scenario gives the size of buckets") {
  constexpr double kMiB = 1048576;
  struct Case {
    std::string keys;
    double first_mib, mib;
  };
  const Case cases[] = {
      {"", 1, 25},
      {"bucket_mb = 25\n", 25, 25},
      {"bucket_mb = 0.5\n", 0.5, 0.5},
      {"first_bucket_mb = 4\n", 4, 25},
      {"bucket_mb = 16\nfirst_bucket_mb = 1\n", 1, 16},
      {"preset = \"pytorch-ddp\"\n", 1, 25},
      {"preset = \"pytorch-ddp\"\nbucket_mb = 40\n", 40, 40},
      {"preset = \"megatron-ddp\"\n", 1e6, 1e6},
  };
  for (const Case& c : cases) {
    CAPTURE(c.keys);
    const Scenario s = with_lines("[training]\nglobal_batch = 1024\n[strategy]\n" + c.keys);
    CHECK(s.strategy.first_bucket_bytes == Approx(c.first_mib * kMiB));
    CHECK(s.strategy.bucket_bytes == Approx(c.mib * kMiB));
  }
}

TEST_CASE("a named strategy fills in what the scenario leaves out") {
  const std::string training = "[training]\nglobal_batch = 1024\n";
  auto plain = with_lines(training + "[strategy]\npreset = \"megatron-ddp\"\n");
  CHECK_FALSE(plain.strategy.overlap);
  CHECK(plain.strategy.bucket_bytes == Approx(1e6 * 1048576));
  CHECK(plain.strategy.title == "Megatron-LM, gradients reduced after the backward pass");
  auto changed = with_lines(training + "[strategy]\npreset = \"megatron-ddp\"\nbucket_mb = 40\n",
                            {"strategy.overlap=true"});
  CHECK(changed.strategy.overlap);
  CHECK(changed.strategy.bucket_bytes == Approx(40 * 1048576));
  CHECK(changed.strategy.title ==
        "Megatron-LM, gradients reduced after the backward pass, but for overlap, bucket_mb");
  // Megatron-LM sums gradients in fp32: 2 bytes of weight and 4 of gradient beside the optimizer's state.
  auto core = with_lines(training + "[strategy]\npreset = \"megatron-core\"\n");
  CHECK(core.training.precision == Precision::bf16);
  CHECK(core.training.gradient_precision == Precision::fp32);
  auto narrow =
      with_lines(training + "gradient_precision = \"bf16\"\n[strategy]\npreset = \"megatron-core\"\n");
  CHECK(narrow.training.gradient_precision == Precision::bf16);
  CHECK(narrow.strategy.title == "Megatron Core, distributed optimizer, but for gradient_precision");
  // Each shipped preset can be read completely and has a title.
  for (const std::string& name : preset_names("simulator/strategies")) {
    CAPTURE(name);
    CHECK_FALSE(with_lines(training, {"strategy.preset=" + name, "cluster.nodes=1"}).strategy.title.empty());
  }
}

TEST_CASE("a profiled model has as many stages as were measured") {
  auto s = read_scenario_text(
      "[model.profiled]\nstages = 8\nforward_ms = 1\nbackward_input_ms = 1\nbackward_weight_ms = "
      "1\np2p_bytes = 1000\n"
      "[training]\nglobal_batch = 64\nprecision = \"fp16\"\n[cluster]\npreset = \"dgx-a100\"\nnodes = 2\n",
      "profiled.toml");
  CHECK(s.strategy.pipeline == 8);
  CHECK(s.strategy.data == 2);
  CHECK(s.microbatches == 32);
}

TEST_CASE("interleaved stages hold several parts of the model") {
  const std::string text =
      "[model.profiled]\nstages = 8\nforward_ms = 1\nbackward_input_ms = 1\nbackward_weight_ms = "
      "1\np2p_bytes = 1000\n[training]\nglobal_batch = 64\nprecision = \"fp16\"\n"
      "[cluster]\npreset = \"dgx-a100\"\nnodes = 2\n"
      "[strategy]\nschedule = \"interleaved\"\nvirtual_stages = 2\n";
  const Scenario s = read_scenario_text(text, "interleaved.toml");
  CHECK(s.strategy.schedule == PipelineSchedule::interleaved);
  CHECK(s.strategy.virtual_stages == 2);
  CHECK(s.strategy.pipeline == 4);  // eight measured parts, two per stage
  CHECK(s.strategy.data == 4);
  const Scenario given =
      read_scenario_text(text + "stage_layers = [1, 1, 1, 1, 1, 1, 1, 1]\n", "interleaved.toml");
  CHECK(given.strategy.stage_layers.size() == 8);
}

TEST_CASE("all shipped scenarios are accepted") {
  struct Case {
    std::string name;
    int devices, data, pipeline, microbatches;
    const char* gradients;
  };
  const Case cases[] = {
      {"resnet50-ring", 32, 32, 1, 1, "all-reduce"},
      {"resnet50-ps", 32, 32, 1, 1, "parameter-server"},
      {"bert-large-ring", 32, 32, 1, 1, "all-reduce"},
      {"bert-large-ps", 32, 32, 1, 1, "parameter-server"},
      {"gpt3-175b", 768, 16, 48, 192, "all-reduce"},
      {"megatron-7.5b-interleaved", 32, 8, 4, 16, "all-reduce"},
  };
  fs::path folder = fs::path(REHEARSE_TESTS_DIR).parent_path() / "simulator/scenarios";
  for (const auto& c : cases) {
    CAPTURE(c.name);
    auto s = read_scenario_file(folder / (c.name + ".toml"));
    CHECK(s.name == c.name);
    CHECK(s.cluster->devices() == c.devices);
    CHECK(s.strategy.data == c.data);
    CHECK(s.strategy.pipeline == c.pipeline);
    CHECK(s.microbatches == c.microbatches);
    CHECK(s.strategy.gradients == c.gradients);
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    CAPTURE(entry.path().string());
    CHECK_NOTHROW(read_scenario_file(entry.path()));
  }
}

TEST_CASE("how parameter servers wait is read, with a usual staleness") {
  const std::string text =
      "[model]\npreset = \"resnet50\"\n[training]\nglobal_batch = 64\n[cluster]\npreset = \"ethernet\"\n"
      "nodes = 4\n[strategy]\ngradients = \"parameter-server\"\n[strategy.parameter_server]\n";
  using Server = ParameterServer;
  struct Case {
    const char* keys;
    Server::Mode mode;
    int staleness;
    Server::Placement placement;
  };
  for (const Case& c :
       {Case{"", Server::Mode::sync, 0, Server::Placement::dedicated},
        Case{"mode = \"async\"\n", Server::Mode::async, 0, Server::Placement::dedicated},
        Case{"mode = \"stale-synchronous\"\n", Server::Mode::stale_synchronous, 3,
             Server::Placement::dedicated},
        Case{"mode = \"stale-synchronous\"\nstaleness = 0\nplacement = \"devices\"\nservers = 16\n",
             Server::Mode::stale_synchronous, 0, Server::Placement::devices}}) {
    CAPTURE(c.keys);
    const Scenario s = read_scenario_text(text + c.keys, "ps.toml");
    CHECK(s.strategy.parameter_server.mode == c.mode);
    CHECK(s.strategy.parameter_server.staleness == c.staleness);
    CHECK(s.strategy.parameter_server.placement == c.placement);
    CHECK(s.cluster->server_nodes() == (c.placement == Server::Placement::dedicated ? 1 : 0));
  }
}
