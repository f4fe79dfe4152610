// Checks scenarios exported as launch files for real jobs: names of settings, whether degrees fill the
// cluster, and what is refused.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "models/text/document.hpp"
#include "simulator/jobs/launch/launch_files.hpp"
#include "simulator/jobs/torchtitan_flavors.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/launch_cases.hpp"
#include "tests/launch_names.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Scenario shipped(const std::string& name) {
  return read_scenario_file(std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/" + name + ".toml");
}

// Returns the arguments of a script by name; those without a value are empty.
std::map<std::string, std::string> arguments_of(const std::string& script) {
  std::map<std::string, std::string> found;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  --", 0) != 0 || line.find("nproc-per-node") != std::string::npos) continue;
    const std::size_t space = std::min(line.find(' ', 4), line.size());
    found[line.substr(4, space - 4)] = space < line.size() ? line.substr(space + 1) : "";
  }
  return found;
}

// Expands a layout such as "Et|(tt|)*62tL" to its stages, like Megatron-LM's parse_str_to_list().
std::vector<std::string> stages_of(const std::string& layout) {
  std::string flat;
  for (std::size_t i = 0; i < layout.size();) {
    if (layout[i] == '"') {
      ++i;
    } else if (layout[i] == '(') {
      const std::size_t end = layout.find(")*", i);
      std::size_t digits = 0;
      const int times = std::stoi(layout.substr(end + 2), &digits);
      for (int n = 0; n < times; ++n) flat += layout.substr(i + 1, end - i - 1);
      i = end + 2 + digits;
    } else {
      flat += layout[i++];
    }
  }
  std::vector<std::string> stages = {""};
  for (const char c : flat)
    if (c == '|')
      stages.emplace_back();
    else
      stages.back() += c;
  return stages;
}

void collect_keys(const nlohmann::json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    keys.insert(key);
    if (value.is_object()) collect_keys(value, keys);
  }
}

bool says(const LaunchFile& file, const std::string& part) {
  return std::any_of(file.cannot.begin(), file.cannot.end(),
                     [&](const std::string& sentence) { return sentence.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("launch files are as they were read and committed") {
  for (const char* name : {"gpt3-175b", "llama3-405b"})
    check_golden(std::string("launch-") + name + "-megatron.sh", megatron_launch(shipped(name)).text);
  check_golden("launch-mixtral-8x7b-megatron.sh", megatron_launch(scenario_of(kLaunchCases[9])).text);
  check_golden("launch-gpt3-175b-deepspeed.json", deepspeed_launch(shipped("gpt3-175b")).text);
  check_golden("launch-llama3-405b-torchtitan.toml", torchtitan_launch(shipped("llama3-405b")).text);
  check_golden("launch-deepseek-v3-torchtitan.toml", torchtitan_launch(scenario_of(kLaunchCases[10])).text);
}

TEST_CASE("Megatron-LM gets arguments that it has, and degrees that fill the cluster") {
  int written = 0;
  for (const LaunchCase& one : kLaunchCases) {
    const Scenario scenario = scenario_of(one);
    const LaunchFile file = megatron_launch(scenario);
    CAPTURE(one.model, file.text, file.cannot);
    if (!file.possible) continue;
    ++written;
    const auto arguments = arguments_of(file.text);
    for (const auto& [name, value] : arguments) CHECK(kMegatronArguments.count(name) == 1);
    const auto number = [&](const char* name) { return std::stoi(arguments.at(name)); };
    const int sharing = number("tensor-model-parallel-size") * number("pipeline-model-parallel-size") *
                        number("context-parallel-size");
    // As in validate_args(): the world size is a multiple of the model's ranks, and the quotient is the
    // data-parallel degree.
    CHECK(scenario.cluster->devices() == sharing * scenario.strategy.data);
    CHECK(number("global-batch-size") ==
          number("micro-batch-size") * scenario.strategy.data * scenario.microbatches);
    CHECK(number("max-position-embeddings") >= number("seq-length"));
    CHECK(file.text.find("--nproc-per-node " + std::to_string(scenario.cluster->node().devices)) !=
          std::string::npos);
    if (arguments.count("pipeline-model-parallel-layout") == 0) continue;
    const auto stages = stages_of(arguments.at("pipeline-model-parallel-layout"));
    CHECK(static_cast<int>(stages.size()) == scenario.strategy.pipeline * scenario.strategy.virtual_stages);
    CHECK(stages.front().front() == 'E');
    CHECK(stages.back().back() == 'L');
    int layers = 0;
    for (const std::string& stage : stages)
      layers += static_cast<int>(std::count(stage.begin(), stage.end(), 't'));
    CHECK(layers == number("num-layers"));
  }
  CHECK(written == 15);  // all but BLOOM
}

TEST_CASE("torchtitan gets keys that it has, and degrees that fill the cluster") {
  int written = 0;
  for (const LaunchCase& one : kLaunchCases) {
    const Scenario scenario = scenario_of(one);
    const LaunchFile file = torchtitan_launch(scenario);
    CAPTURE(one.model, file.text, file.cannot);
    if (!file.possible) continue;
    ++written;
    std::map<std::string, std::string> values;
    for (const auto& [path, value] : Document::parse_text(file.text, file.name).values()) {
      const std::string key = path.substr(0, path.find('['));
      values[key] = value;
      CHECK(kTorchtitanKeys.count(key) == 1);
    }
    const auto number = [&](const std::string& key) { return std::stoi(values.at(key)); };
    const int data = number("parallelism.data_parallel_replicate_degree") *
                     number("parallelism.data_parallel_shard_degree");
    CHECK(data == scenario.strategy.data);
    // As in ParallelDims._validate().
    CHECK(scenario.cluster->devices() == data * number("parallelism.tensor_parallel_degree") *
                                             number("parallelism.pipeline_parallel_degree") *
                                             number("parallelism.context_parallel_degree"));
    // As in train.py: gradients are accumulated over global_batch_size / (local_batch_size x data) passes.
    const int passes = number("training.global_batch_size") / (number("training.local_batch_size") * data);
    const bool pipeline = scenario.strategy.pipeline > 1;
    CHECK(passes == (pipeline ? 1 : scenario.microbatches));
    if (pipeline)
      CHECK(number("training.local_batch_size") / number("parallelism.pipeline_parallel_microbatch_size") ==
            scenario.microbatches);
  }
  CHECK(written == 10);
}

TEST_CASE("DeepSpeed gets keys that it has, and bucket sizes in elements") {
  int written = 0;
  for (const LaunchCase& one : kLaunchCases) {
    const Scenario scenario = scenario_of(one);
    const LaunchFile file = deepspeed_launch(scenario);
    CAPTURE(one.model, file.text, file.cannot);
    if (!file.possible) continue;
    ++written;
    const auto json = nlohmann::json::parse(file.text);
    std::set<std::string> keys;
    collect_keys(json, keys);
    for (const std::string& key : keys) {
      CAPTURE(key);
      CHECK(kDeepspeedKeys.count(key) == 1);
    }
    CHECK(json["train_micro_batch_size_per_gpu"].get<int>() * json["gradient_accumulation_steps"].get<int>() *
              scenario.strategy.data ==
          scenario.training.global_batch);
    if (json.contains("train_batch_size")) CHECK(json["train_batch_size"] == scenario.training.global_batch);
    const auto& zero = json["zero_optimization"];
    if (!zero.contains("reduce_bucket_size")) continue;
    CHECK(zero["reduce_bucket_size"] ==
          std::floor(scenario.strategy.bucket_bytes / element_bytes(scenario.training.gradient_precision)));
  }
  CHECK(written == 15);  // all but the one with tensor, context and pipeline ranks
}

TEST_CASE("settings follow the scenario") {
  struct Row {
    const LaunchFramework& framework;
    std::vector<std::string> overrides;
    const char* line;
  };
  const std::string bucket = "strategy.bucket_mb=100";
  const std::vector<Row> rows = {
      // 100 MiB with 2 bytes per element, and with 4 bytes
      {kMegatron, {bucket}, "--ddp-bucket-size 52428800"},
      {kMegatron, {bucket, "training.gradient_precision=fp32"}, "--ddp-bucket-size 26214400"},
      {kMegatron, {"training.gradient_precision=fp32"}, "--accumulate-allreduce-grads-in-fp32"},
      {kMegatron, {"strategy.context=2", "strategy.context_kind=ring"}, "--cp-comm-type p2p"},
      {kMegatron, {"strategy.context=2", "strategy.context_kind=all-gather"}, "--cp-comm-type all_gather"},
      {kMegatron, {"strategy.context=2", "strategy.context_kind=all-to-all"}, "--cp-comm-type a2a"},
      {kMegatron,
       {"strategy.pipeline=2", "strategy.placement=[\"tensor\", \"pipeline\", \"data\"]"},
       "--use-tp-pp-dp-mapping"},
      {kMegatron, {"strategy.fsdp=full"}, "--data-parallel-sharding-strategy optim_grads_params"},
      {kMegatron, {"strategy.fsdp=full"}, "unset CUDA_DEVICE_MAX_CONNECTIONS"},
      {kMegatron, {"strategy.zero_stage=2"}, "--data-parallel-sharding-strategy optim_grads"},
      {kMegatron,
       {"strategy.fsdp=hybrid", "strategy.shard_degree=8"},
       "--num-distributed-optimizer-instances 2"},
      {kMegatron,
       {"strategy.pipeline=4", "strategy.schedule=interleaved", "strategy.virtual_stages=2",
        "strategy.stage_layers=[5, 4, 4, 4, 4, 4, 4, 5]"},
       "--num-virtual-stages-per-pipeline-rank 2"},
      {kMegatron,
       {"strategy.pipeline=2", "strategy.stage_layers=[16, 18]"},
       "--pipeline-model-parallel-layout \"Ettttttttttttttt|tttttttttttttttttL\""},
      {kMegatron, {"training.recompute=full", "training.recompute_layers=3"}, "--recompute-method block"},
      {kMegatron,
       {"training.recompute=selective", "training.attention=unfused"},
       "--recompute-modules core_attn"},
      {kMegatron, {"strategy.zero_stage=1", "strategy.offload=cpu"}, "--optimizer-cpu-offload"},
      {kDeepspeed, {"strategy.zero_stage=1", bucket}, "\"reduce_bucket_size\": 52428800"},
      {kDeepspeed, {"strategy.zero_stage=1", "strategy.overlap=false"}, "\"overlap_comm\": false"},
      {kDeepspeed, {"strategy.zero_stage=3", "strategy.prefetch=0"}, "\"stage3_prefetch_bucket_size\": 0"},
      {kDeepspeed,
       {"strategy.zero_stage=3", "strategy.offload=nvme", "cluster.node.nvme_read_gb_per_s=6",
        "cluster.node.nvme_write_gb_per_s=3"},
       "\"device\": \"nvme\""},
      {kDeepspeed, {"strategy.fsdp=hybrid", "strategy.shard_degree=8"}, "\"mics_shard_size\": 8"},
      {kDeepspeed, {"strategy.tensor=2"}, "\"autotp_size\": 2"},
      {kDeepspeed, {"training.precision=fp16"}, "\"fp16\""},
      {kTorchtitan, {"strategy.fsdp=full"}, "fsdp_reshard_after_forward = \"always\""},
      {kTorchtitan,
       {"strategy.fsdp=hybrid", "strategy.shard_degree=8"},
       "data_parallel_replicate_degree = 2"},
      {kTorchtitan, {"strategy.fsdp=full", "strategy.context=2"}, "data_parallel_shard_degree = 8"},
      {kTorchtitan,
       {"strategy.fsdp=full", "strategy.context=2"},
       "context_parallel_rotate_method = \"alltoall\""},
      {kTorchtitan,
       {"strategy.fsdp=full", "strategy.pipeline=2", "strategy.schedule=zb-v"},
       "pipeline_parallel_schedule = \"ZBVZeroBubble\""},
      {kTorchtitan, {"training.recompute=operators"}, "selective_ac_option = \"op\""},
      {kTorchtitan, {"training.framework=torchtitan-2024-eager"}, "enable = false"},
  };
  for (const Row& row : rows) {
    const LaunchFile file = row.framework.write(scenario_of("llama3-8b", "dgx-h100", 2, row.overrides));
    CAPTURE(row.framework.name, row.overrides, file.text, file.cannot);
    CHECK(file.possible);
    CHECK(file.text.find(row.line) != std::string::npos);
  }
}

TEST_CASE("what a framework does otherwise is said") {
  struct Row {
    const LaunchFramework& framework;
    std::vector<std::string> overrides;
    const char* sentence;
  };
  const std::vector<std::string> zb_v = {"strategy.pipeline=2", "strategy.schedule=zb-v",
                                         "strategy.fsdp=full"};
  const std::vector<Row> rows = {
      {kMegatron, zb_v, "no ZB-V schedule"},
      {kMegatron, {"strategy.tensor=2", "strategy.tensor_overlap=chunks"}, "only with sequence parallelism"},
      {kMegatron,
       {"strategy.pipeline=2", "strategy.tensor=2",
        "strategy.placement=[\"pipeline\", \"tensor\", \"data\"]"},
       "placement = "},
      {kMegatron, {"strategy.zero_stage=1", "training.optimizer=sgd"}, "for Adam only"},
      {kMegatron, {"training.recompute=operators"}, "every second matrix product"},
      {kMegatron, {"strategy.compression=powersgd"}, "does not compress"},
      {kMegatron, {"strategy.all_reduce=tree"}, "NCCL_ALGO"},
      {kMegatron,
       {"strategy.zero_stage=3", "strategy.offload=nvme", "cluster.node.nvme_read_gb_per_s=6",
        "cluster.node.nvme_write_gb_per_s=3"},
       "only in host memory"},
      {kMegatron, {"strategy.pipeline=4", "strategy.schedule=dualpipe"}, "pipeline = 2 and data = 8"},
      {kMegatron, {"strategy.overlap_passes=true"}, "overlap_passes"},
      {kTorchtitan, {}, "hold 100 MiB"},
      {kDeepspeed, {"strategy.pipeline=2"}, "num_pp=2, num_mp=1, num_dp=8"},
      {kDeepspeed, {"strategy.pipeline=2", "strategy.schedule=gpipe"}, "no GPipe schedule"},
      {kDeepspeed, {"strategy.context=2"}, "context_kind = \"ring\""},
      {kDeepspeed, {"training.recompute=full"}, "deepspeed.checkpointing.checkpoint"},
      {kTorchtitan, {"strategy.zero_stage=1"}, "no ZeRO-1"},
      {kTorchtitan, {"strategy.fsdp=full", "strategy.tensor=2"}, "always has sequence parallelism"},
      {kTorchtitan, {"training.optimizer=sgd"}, "only Adam"},
      {kTorchtitan,
       {"strategy.fsdp=full", "strategy.pipeline=2", "strategy.schedule=zb-h1"},
       "no ZB-H1 schedule"},
  };
  for (const Row& row : rows) {
    const LaunchFile file = row.framework.write(scenario_of("llama3-8b", "dgx-h100", 2, row.overrides));
    CAPTURE(row.framework.name, row.overrides, file.text, file.cannot);
    CHECK(file.possible);
    CHECK(says(file, row.sentence));
    for (const std::string& sentence : file.cannot) CHECK(sentence.back() == '.');
  }
}

TEST_CASE("a job that a framework cannot run is refused with the reason") {
  struct Row {
    const LaunchFramework& framework;
    LaunchCase job;
    const char* reason;
  };
  const std::vector<Row> rows = {
      {kMegatron, {"resnet50", "dgx-a100", 1, {}}, "next token"},
      {kMegatron, {"bert-large", "dgx-a100", 1, {}}, "next token"},
      {kMegatron, {"gpt2", "dgx-a100", 1, {"strategy.gradients=local-sgd"}}, "local-sgd"},
      {kMegatron, {"gpt2", "cpu-cluster", 4, {"training.precision=fp32"}}, "not an NVIDIA GPU"},
      {kMegatron, {"bloom-176b", "dgx-a100", 8, {"strategy.tensor=8"}}, "embedding_norm"},
      {kMegatron,
       {"llama3-8b",
        "dgx-h100",
        2,
        {"strategy.context=2", "strategy.context_kind=all-gather", "training.sequence_length=1026"}},
       "2 x context"},
      {kMegatron, {"gpt-oss-20b", "dgx-h100", 2, {"strategy.tensor=2"}}, "biases"},
      {kDeepspeed,
       {"llama3-8b", "dgx-h100", 2, {"strategy.pipeline=2", "strategy.zero_stage=3"}},
       "stage 2 on"},
      {kDeepspeed, {"llama3-8b", "dgx-h100", 2, {"strategy.pipeline=2", "strategy.context=2"}}, "sequences"},
      {kTorchtitan, {"gpt3-175b", "dgx-h100", 2, {}}, "form of GPT-3 175B"},
      {kTorchtitan, {"mixtral-8x7b", "dgx-h100", 2, {}}, "form of Mixtral 8x7B"},
      {kTorchtitan, {"llama3-8b", "dgx-h100", 2, {"strategy.tensor=2"}}, "(DDP)"},
      {kTorchtitan, {"llama3-8b", "dgx-h100", 2, {"training.precision=fp16"}}, "not in fp16"},
      {kTorchtitan,
       {"qwen3-32b", "dgx-h100", 2, {"strategy.fsdp=full", "strategy.pipeline=2"}},
       "no pipeline"},
  };
  for (const Row& row : rows) {
    const LaunchFile file = row.framework.write(scenario_of(row.job));
    CAPTURE(row.framework.name, row.job.model, row.job.overrides, file.text, file.cannot);
    CHECK_FALSE(file.possible);
    CHECK(file.text.empty());
    CHECK(says(file, row.reason));
  }
}

TEST_CASE("a flavor that torchtitan lacks has the inner width asked for") {
  for (const char* name : {"llama2-7b", "llama2-13b", "llama2-70b"}) {
    const Model model = model_preset(name);
    std::string reason;
    const auto found = torchtitan_model(model, reason);
    REQUIRE(found);
    const auto& t = std::get<Transformer>(model.shape);
    const auto value = [&](const std::string& key) {
      return std::stod(found->registration.substr(found->registration.find(key) + key.size()));
    };
    // As in FeedForward.__init__ of torchtitan/models/llama3/model/model.py.
    const double usual = std::floor(2 * (4 * t.hidden) / 3), multiple = value("multiple_of=");
    const double inner = std::floor(value("ffn_dim_multiplier=") * usual);
    CAPTURE(found->registration);
    CHECK(multiple * std::ceil(inner / multiple) == t.feed_forward);
  }
}
