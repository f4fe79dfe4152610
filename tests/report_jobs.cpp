// Checks files that start jobs in frameworks, read as scenarios: what each setting means, and as the inverse
// of the writers of launch files.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "models/text/document.hpp"
#include "simulator/jobs/job_file.hpp"
#include "simulator/jobs/job_names.hpp"
#include "simulator/jobs/launch/launch_files.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/launch_names.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

std::map<std::string, std::string> keys_of_job(const std::string& text, const std::string& path = "job") {
  const auto job = read_job(text, path);
  REQUIRE(job);
  std::map<std::string, std::string> keys;
  for (const JobKey& one : job->keys) keys[one.key] = one.value;
  return keys;
}

std::string error_of_job(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read_scenario_text(text, "job", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// After examples/gpt3/train_gpt3_175b_distributed.sh of NVIDIA/Megatron-LM, core_v0.19.0, shortened.
const std::string kMegatronScript = R"(#!/bin/bash
#SBATCH --nodes=16
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=${GPUS_PER_NODE:-8}
TP=${TP:-8}
NUM_NODES=$SLURM_NNODES
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
PP=$((WORLD_SIZE / TP / 2))   # 8
VOCAB_FILE=$1
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96 # of 128
    --seq-length 2048 --max-position-embeddings 2048
)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size 1536 --train-iters 500000 --fp16 --lr 6.0e-5)
if [[ "$TP" == "8" ]]; then
  TRAINING_ARGS+=("--recompute-granularity full" --recompute-method block --recompute-num-layers 3)
else
  TRAINING_ARGS+=(--bf16)
fi
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py "${GPT_MODEL_ARGS[@]}" \
    "${TRAINING_ARGS[@]}" \
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP \
    --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce \
    --vocab-file $VOCAB_FILE --merge-file $2 --save ckpt --use-sharp --no-such-argument 3
)";

}  // namespace

TEST_CASE("a script of Megatron-LM says model, training and strategy") {
  const auto keys = keys_of_job(kMegatronScript, "train.sh");
  const std::map<std::string, std::string> expected = {{"model.transformer.layers", "96"},
                                                       {"model.transformer.hidden", "12288"},
                                                       {"model.transformer.heads", "96"},
                                                       {"model.transformer.feed_forward", "49152"},
                                                       {"model.transformer.vocabulary", "50257"},
                                                       {"model.transformer.positions", "2048"},
                                                       {"model.transformer.biases", "true"},
                                                       {"training.micro_batch", "1"},
                                                       {"training.global_batch", "1536"},
                                                       {"training.sequence_length", "2048"},
                                                       {"training.precision", "\"fp16\""},
                                                       {"training.recompute", "\"full\""},
                                                       {"training.recompute_layers", "3"},
                                                       {"strategy.tensor", "8"},
                                                       {"strategy.pipeline", "8"},
                                                       {"strategy.sequence_parallel", "true"},
                                                       {"strategy.zero_stage", "1"},
                                                       {"strategy.overlap", "true"},
                                                       {"cluster.nodes", "16"},
                                                       {"training.framework", "\"megatron-2022\""}};
  for (const auto& [key, value] : expected) {
    CAPTURE(key);
    REQUIRE(keys.count(key) == 1);
    CHECK(keys.at(key) == value);
  }
  const Scenario scenario = read_scenario_text(kMegatronScript, "train.sh", {"cluster.preset=dgx-a100"});
  CHECK(scenario.strategy.data == 2);
  CHECK(scenario.training.target_samples == 500000.0 * 1536);
  std::string notes;
  for (const std::string& note : scenario.notes) notes += note + "\n";
  CHECK(has_text(notes, "was read as a launch script of Megatron-LM"));
  CHECK(has_text(notes, "--use-sharp"));
  CHECK(has_text(notes, "Not known, and left out: --no-such-argument"));
  CHECK(has_text(notes, "50257 to 51200"));
}

TEST_CASE("arguments of Megatron-Core choose its framework preset") {
  for (const auto& [argument, framework] :
       std::map<std::string, std::string>{{"--use-mcore-models", "megatron-core-2024"},
                                          {"--transformer-impl transformer_engine", "megatron-core-2024"},
                                          {"--transformer-impl local", "megatron-2022"}}) {
    CAPTURE(argument);
    const auto keys = keys_of_job(
        "torchrun pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 "
        "--max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 8 --vocab-size 1000 --bf16 " +
            argument + "\n",
        "train.sh");
    CHECK(keys.at("training.framework") == '"' + framework + '"');
  }
}

TEST_CASE("Megatron-LM divides layers evenly, whatever the embedding and the head take") {
  struct Case {
    std::string arguments, layers;  // empty: left to the balance of times
  };
  for (const Case& c : std::vector<Case>{
           {"--num-layers 32 --pipeline-model-parallel-size 4", "[9, 8, 8, 9]"},
           {"--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2",
            "[3, 2, 2, 3]"},
           {"--num-layers 14 --pipeline-model-parallel-size 4 --account-for-embedding-in-pipeline-split "
            "--account-for-loss-in-pipeline-split",
            "[4, 4, 4, 4]"},
           {"--num-layers 10 --pipeline-model-parallel-size 4", ""}}) {
    CAPTURE(c.arguments);
    CHECK(keys_of_job("torchrun pretrain_gpt.py --hidden-size 64 " + c.arguments)["strategy.stage_layers"] ==
          c.layers);
  }
}

TEST_CASE("arguments of Megatron-LM that change what its kernels hold in memory") {
  const std::string job = "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 64 ";
  auto keys = keys_of_job(job + "--transformer-impl transformer_engine --deterministic-mode");
  CHECK(keys["framework.engine_workspaces"] == "1");
  CHECK(keys_of_job(job + "--transformer-impl local")["framework.engine_workspaces"] == "0");
  CHECK(keys["framework.deterministic_products"] == "true");
  CHECK(keys.count("framework.loss_peak_bytes_per_logit") == 0);
  keys = keys_of_job(job + "--cross-entropy-loss-fusion");
  CHECK(has_text(keys["framework.loss_peak_bytes_per_logit"], "value = 10,"));
  keys = keys_of_job(job + "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te");
  CHECK(keys["training.fused_loss"] == "true");
  CHECK(keys.count("framework.loss_peak_bytes_per_logit") == 0);
}

TEST_CASE("everything that a job file leaves open is asked in one error") {
  const std::string error =
      error_of_job(R"({"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}})");
  for (const char* part : {"is a configuration of DeepSpeed", "--set training.micro_batch=1",
                           "--set training.sequence_length=4096", "--set model.preset=",
                           "--set cluster.preset=dgx-h100", "--set cluster.nodes=1", "is \"auto\""})
    CHECK(has_text(error, part));
  const std::string script = error_of_job(
      "torchrun pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 "
      "--tensor-model-parallel-size $TP --seq-length 512 --micro-batch-size 1 --vocab-size 1000\n");
  CHECK(has_text(script, "--tensor-model-parallel-size is ${TP}, which the script does not set"));
  CHECK(has_text(script, "--set strategy.tensor=N"));
}

TEST_CASE("DeepSpeed's batches give the number of devices") {
  const std::string json =
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "reduce_bucket_size": 5e7}, "bf16": {"enabled": true}})";
  const Scenario scenario = read_scenario_text(
      json, "ds.json",
      {"cluster.preset=dgx-h100", "model.preset=llama3-8b", "training.sequence_length=4096"});
  CHECK(scenario.cluster->nodes() == 1);
  CHECK(scenario.strategy.data == 8);
  CHECK(scenario.microbatches == 4);
  CHECK(scenario.strategy.offload.optimizer == OffloadTo::cpu);
  CHECK(scenario.strategy.bucket_bytes == 1e8);
  CHECK(has_text(error_of_job("{\"train_batch_size\": 64,\n \"zero_optimization\": {\n \"stage\": 7}}"),
                 "job:3:1: zero_optimization.stage is \"7\"; allowed: 0 to 3"));
}

TEST_CASE("torchtitan's configuration, by its new and its old names") {
  const std::string toml = R"([model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[compile]
enable = true
)";
  const Scenario scenario =
      read_scenario_text(toml, "llama3_8b.toml", {"cluster.preset=dgx-h100", "cluster.nodes=4"});
  CHECK(scenario.strategy.tensor == 2);
  CHECK(scenario.strategy.sequence_parallel);
  CHECK(scenario.strategy.data == 16);
  CHECK(scenario.training.global_batch == 32);
  CHECK(scenario.training.recompute == Recompute::operators);
  CHECK(scenario.training.gradient_precision == Precision::fp32);
  std::map<std::string, std::string> settings;
  for (const auto& [key, value] : scenario.settings) settings[key] = value;
  CHECK(settings.at("strategy.fsdp") == "hybrid");
  CHECK(settings.at("strategy.shard_degree") == "8");
  const auto old = keys_of_job(
      "[model]\nname = \"llama2\"\nflavor = \"13B\"\n[training]\nbatch_size = 4\nseq_len = 4096\n"
      "tensor_parallel_degree = 8\ncompile = false\n[experimental]\npipeline_parallel_degree = 2\n");
  CHECK(old.at("model.preset") == "\"llama2-13b\"");
  CHECK(old.at("strategy.tensor") == "8");
  CHECK(old.at("strategy.pipeline") == "2");
  CHECK(old.at("training.framework") == "\"torchtitan-2024-eager\"");
}

TEST_CASE("the files of Hugging Face's Trainer") {
  const auto run = keys_of_job(
      "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path meta-llama/Llama-2-7b-hf "
      "--per_device_train_batch_size 2 "
      "--gradient_accumulation_steps 8 --bf16 True --block_size 4096 --fsdp \"full_shard auto_wrap\" "
      "--gradient_checkpointing True --output_dir out\n");
  CHECK(run.at("model.preset") == "\"llama2-7b\"");
  CHECK(run.at("training.micro_batch") == "2");
  CHECK(run.at("training.sequence_length") == "4096");
  CHECK(run.at("strategy.fsdp") == "\"full\"");
  CHECK(run.at("training.recompute") == "\"full\"");
  CHECK(run.at("training.precision") == "\"bf16\"");
  const auto json = keys_of_job(R"({"per_device_train_batch_size": 4, "fp16": true, "optim": "sgd"})");
  CHECK(json.at("training.optimizer") == "\"sgd\"");
  CHECK(json.at("strategy.preset") == "\"pytorch-ddp\"");
}

TEST_CASE("configurations in YAML") {
  const std::string accelerate =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: "
      "HYBRID_SHARD\n"
      "  fsdp_offload_params: false\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n";
  const std::string axolotl =
      "base_model: NousResearch/Meta-Llama-3.1-8B\nsequence_len: 8192\nadapter: lora\nmicro_batch_size: 1\n"
      "gradient_accumulation_steps: 8\nbf16: auto\ngradient_checkpointing: true\ndeepspeed:\ndatasets:\n  - "
      "path: x\n";
  const std::string megatron =
      "model:\n  num_layers: 8\n  hidden_size: 512\n  num_attention_heads: 8\n  tensor_model_parallel_size: "
      "2\n  seq_length: 1024\n";
  try {
    const auto keys = keys_of_job(accelerate);
    CHECK(keys.at("strategy.fsdp") == "\"hybrid\"");
    CHECK(keys.at("cluster.nodes") == "2");
    CHECK(keys.at("training.precision") == "\"bf16\"");
    const auto job = read_job(axolotl, "job");
    REQUIRE(job);
    std::map<std::string, std::string> tuned;
    for (const JobKey& one : job->keys) tuned[one.key] = one.value;
    CHECK(tuned.at("model.preset") == "\"llama3.1-8b\"");
    CHECK(tuned.at("training.recompute") == "\"full\"");
    CHECK(job->accumulation == 8);
    CHECK(std::any_of(job->notes.begin(), job->notes.end(), [](const std::string& note) {
      return has_text(note, "adapter = lora) are not modelled yet");
    }));
    CHECK(keys_of_job(megatron).at("strategy.tensor") == "2");
  } catch (const InputError& error) {
    CHECK(has_text(error.what(), "was made without libyaml-cpp"));
  }
}

TEST_CASE("what is no job that can be read is named as what it is") {
  const std::pair<std::string, const char*> cases[] = {
      {"import torch\nfrom torch import nn\nx = nn.Linear(1, 2)\n", "is a Python program"},
      {"import nemo_run as run\nfrom nemo.collections import llm\n", "is a recipe of NeMo"},
      {"#!/bin/bash\n#SBATCH --nodes=4\nsrun ./train\n",
       "is a batch script of Slurm without a training command"},
      {"#!/bin/sh\nls -l\n", "is a shell script without a training command"},
      {"FROM nvcr.io/nvidia/pytorch:24.01-py3\nRUN pip install x\n", "is a Dockerfile"},
      {"{\"traceEvents\": []}", "is a Chrome trace"},
      {"{\"weight_map\": {}}", "is an index of weights"},
      {"{\"hello\": 1}", "is JSON of no kind"},
      {"# nThread 1 nGpus 8 minBytes 8\n#\n# size count type redop root time algbw busbw\n  1024 256 float "
       "sum -1 10.1 0.1 0.2 0\n",
       "rehearse validate FILE"},
      {"size,count,time\n1,2,3\n", "is a table in CSV"},
      {std::string("\x10\0\0\0\0\0\0\0{\"a\":1}", 15), "is weights in safetensors"},
      {"\x80\x04\x95stuff", "is a checkpoint or pickle"}};
  for (const auto& [text, part] : cases) {
    CAPTURE(text, error_of_job(text));
    CHECK(has_text(error_of_job(text), part));
    CHECK(!has_text(error_of_job(text), "TOML syntax"));
  }
  // A scenario with an error in its syntax stays one.
  CHECK(has_text(error_of_job("[model\npreset = \"gpt2\"\n"), "job:1"));
}

TEST_CASE("a script of any shape ends, and nothing grows without a bound") {
  std::string grows = "#!/bin/bash\nA=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) grows += "A=$A$A\n";
  CHECK(has_text(error_of_job(grows), "expands to more text"));
  for (const std::string text :
       {"#!/bin/bash\nif [[ $A == 1 \n", "#!/bin/bash\ncase $X in a) echo; ", "#!/bin/bash\nA=(1 2\n",
        "#!/bin/bash\n${A:-${B:-${C", "#!/bin/bash\ncat <<EOF\nx\n", "#!/bin/bash\n$((1/0)) $((((((",
        "#!/bin/bash\nfi\ndone\nesac\nthen\nelse\n", "#!/bin/bash\nif true; then"})
    CHECK(!error_of_job(text).empty());
  std::string nested = "#!/bin/bash\necho ";
  for (int i = 0; i < 5000; ++i) nested += "${A:-";
  CHECK(!error_of_job(nested).empty());
}

TEST_CASE("readers know every argument that the writers write") {
  for (const std::string& name : kMegatronArguments) {
    CAPTURE(name);
    CHECK(find_job_name(megatron_names(), name));
  }
  for (const std::string& name : kTorchtitanKeys) {
    CAPTURE(name);
    const std::string table = name.substr(0, name.find('.'));
    CHECK((find_job_name(torchtitan_names(), name) || find_job_name(torchtitan_names(), table)));
  }
}
