// Reads the job files around Hugging Face's Trainer: TrainingArguments, accelerate's and axolotl's YAML.
// Sources: huggingface_names.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "simulator/jobs/job_readers.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// Names on the Hugging Face hub that mean a preset, without the owner, in lower case and up to the first word
// that does not change the sizes ("-hf", "-instruct", "-base").
struct HubModel {
  std::string_view name, preset;
};
constexpr HubModel kHubModels[] = {
    {"llama-2-7b", "llama2-7b"},
    {"llama-2-13b", "llama2-13b"},
    {"llama-2-70b", "llama2-70b"},
    {"meta-llama-3-8b", "llama3-8b"},
    {"llama-3-8b", "llama3-8b"},
    {"meta-llama-3-70b", "llama3-70b"},
    {"llama-3-70b", "llama3-70b"},
    {"llama-3.1-8b", "llama3.1-8b"},
    {"meta-llama-3.1-8b", "llama3.1-8b"},
    {"llama-3.1-70b", "llama3.1-70b"},
    {"meta-llama-3.1-70b", "llama3.1-70b"},
    {"llama-3.1-405b", "llama3-405b"},
    {"meta-llama-3.1-405b", "llama3-405b"},
    {"mixtral-8x7b", "mixtral-8x7b"},
    {"mixtral-8x22b", "mixtral-8x22b"},
    {"qwen2.5-7b", "qwen2.5-7b"},
    {"qwen2.5-14b", "qwen2.5-14b"},
    {"qwen2.5-32b", "qwen2.5-32b"},
    {"qwen2.5-72b", "qwen2.5-72b"},
    {"qwen3-8b", "qwen3-8b"},
    {"qwen3-14b", "qwen3-14b"},
    {"qwen3-32b", "qwen3-32b"},
    {"qwen3-30b-a3b", "qwen3-30b-a3b"},
    {"qwen3-235b-a22b", "qwen3-235b-a22b"},
    {"gpt2", "gpt2"},
    {"gpt2-medium", "gpt2-medium"},
    {"gpt2-large", "gpt2-large"},
    {"gpt2-xl", "gpt2-xl"},
    {"bloom", "bloom-176b"},
    {"mpt-7b", "mpt-7b"},
    {"mpt-30b", "mpt-30b"},
    {"bert-base-uncased", "bert-base"},
    {"bert-large-uncased", "bert-large"},
    {"bert-base-cased", "bert-base"},
    {"bert-large-cased", "bert-large"},
    {"gpt-oss-20b", "gpt-oss-20b"},
    {"gpt-oss-120b", "gpt-oss-120b"},
    {"deepseek-v3", "deepseek-v3"},
};
constexpr std::string_view kSuffixes[] = {
    "", "-hf", "-instruct", "-base", "-chat", "-chat-hf", "-v0.1", "-instruct-v0.1", "-bf16", "-v3", "-it"};

std::string lower_case(std::string_view text) {
  std::string copy(text);
  for (char& c : copy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return copy;
}

std::string_view preset_of(std::string_view hub_name) {
  const std::string name = lower_case(
      hub_name.substr(hub_name.rfind('/') == std::string_view::npos ? 0 : hub_name.rfind('/') + 1));
  for (const HubModel& one : kHubModels)
    for (const std::string_view suffix : kSuffixes)
      if (name == std::string(one.name) + std::string(suffix)) return one.preset;
  return {};
}

// Returns the file of this name beside the job file, or in the working folder; "" if there is none.
std::string file_beside(const JobFile& job, const std::string& name) {
  std::error_code ignored;
  const fs::path beside = fs::path(job.path).parent_path() / name;
  if (fs::is_regular_file(beside, ignored)) return beside.string();
  return fs::is_regular_file(name, ignored) ? name : "";
}

void set_precision(JobDraft& draft, std::string_view mixed) {
  const auto yes = [&](std::string_view name) { return draft.on(name); };
  if (mixed == "fp8")
    draft.set_text("training.precision", "fp8", "mixed_precision");
  else if (mixed == "bf16" || mixed == "fp16")
    draft.set_text("training.precision", mixed, "mixed_precision");
  else if (yes("bf16") || yes("fp16"))
    draft.set_text("training.precision", yes("bf16") ? "bf16" : "fp16", yes("bf16") ? "bf16" : "fp16");
  else if (yes("tf32"))
    draft.set_text("training.precision", "tf32", "tf32");
  else
    draft.note(
        "The file names no precision: the one that the device has in 16 bits is taken (--set "
        "training.precision=fp32).");
}

void set_optimizer(JobDraft& draft, std::string_view name) {
  const std::string optimizer = lower_case(draft.text(name, "adamw_torch"));
  if (optimizer == "sgd")
    draft.set_text("training.optimizer", "sgd", name);
  else if (optimizer.find("adam") == std::string::npos || optimizer.find("8bit") != std::string::npos ||
           optimizer.find("4bit") != std::string::npos)
    draft.note(fmt::format("The optimizer {} is counted as Adam with its state in fp32.", optimizer));
}

void set_attention(JobDraft& draft) {
  std::optional<bool>& fuses = draft.job().fuses_attention;
  const std::string attention = draft.text("attn_implementation", "sdpa");
  fuses = attention != "eager" || draft.on("flash_attention") || draft.on("xformers_attention");
}

void refuse_adapters(JobDraft& draft) {
  for (const char* name : {"adapter", "use_peft", "finetuning_type"}) {
    const std::string kind = draft.text(name);
    if (is_off(kind) || kind == "full") continue;
    draft.note(
        fmt::format("Adapters ({} = {}) are not modelled yet: all parameters are trained.", name, kind));
  }
  for (const char* name : {"load_in_8bit", "load_in_4bit"})
    if (draft.on(name))
      draft.note(fmt::format("Quantized weights ({}) are not modelled: they count in the training precision.",
                             name));
}

// Sets the shards of FSDP by the words of TrainingArguments and accelerate.
void set_fsdp(JobDraft& draft, std::string_view from) {
  draft.set_text("training.framework", "huggingface-2024", from);
  const std::string words = lower_case(draft.text(from));
  const auto says = [&](const char* word) { return words.find(word) != std::string::npos; };
  if (says("hybrid_shard"))
    draft.set_text("strategy.fsdp", "hybrid", from);
  else if (says("shard_grad_op"))
    draft.set("strategy.zero_stage", 2.0, from);
  else if (says("no_shard"))
    draft.set("strategy.zero_stage", 0.0, from);
  else
    draft.set_text("strategy.fsdp", "full", from);
  for (const char* key : {"fsdp_config.fsdp_reshard_after_forward", "fsdp_config.reshard_after_forward"}) {
    if (!draft.has(key)) continue;
    const std::string value = lower_case(draft.text(key));
    if (value == "shard_grad_op" || is_off(value)) draft.set("strategy.reshard_after_forward", false, key);
  }
  if (says("offload") || draft.on("fsdp_config.fsdp_offload_params") ||
      draft.on("fsdp_config.offload_params")) {
    draft.set_text("strategy.offload", "cpu", says("offload") ? from : "fsdp_config.fsdp_offload_params");
    draft.set_text("strategy.offload_parameters", "cpu",
                   says("offload") ? from : "fsdp_config.fsdp_offload_params");
  }
}

// Reads a DeepSpeed configuration that the job names.
void set_deepspeed(JobDraft& draft, std::string_view from) {
  const std::string name = draft.text(from), file = file_beside(draft.job(), name);
  if (file.empty())
    return draft.ask("strategy.zero_stage", fmt::format("{} = {} is not beside the job file", from, name),
                     "--set strategy.zero_stage=3");
  read_deepspeed_part(draft, json_settings(read_text_file(file, "DeepSpeed configuration"), file));
}

void set_ddp(JobDraft& draft) {
  draft.set_text("strategy.preset", "pytorch-ddp");
}

void set_recomputation(JobDraft& draft) {
  for (const char* name : {"gradient_checkpointing", "fsdp_config.fsdp_activation_checkpointing",
                           "fsdp_config.activation_checkpointing"})
    if (draft.on(name)) draft.set_text("training.recompute", "full", name);
}

// Asks what none of these files says, and counts what a rank adds up.
void set_batch(JobDraft& draft) {
  JobFile& job = draft.job();
  job.accumulation =
      std::max(1.0, draft.number("gradient_accumulation_steps",
                                 draft.number("deepspeed_config.gradient_accumulation_steps", 1)));
  job.iterations = std::max(0.0, draft.number("max_steps", 0, -1));
  if (draft.text("gradient_accumulation_steps") == "auto")
    draft.ask("training.global_batch", "gradient_accumulation_steps is \"auto\"",
              "--set training.global_batch=256");
}

void ask_rest(JobDraft& draft, const char* what) {
  const auto& keys = draft.job().keys;
  const auto has = [&](std::string_view key) {
    return std::any_of(keys.begin(), keys.end(), [&](const JobKey& one) { return one.key == key; });
  };
  if (!has("training.micro_batch"))
    draft.ask("training.micro_batch", fmt::format("{} does not say it", what),
              "--set training.micro_batch=1");
  if (!has("training.sequence_length"))
    draft.ask("training.sequence_length", fmt::format("{} does not say it", what),
              "--set training.sequence_length=4096");
}

}  // namespace

void set_named_model(JobDraft& draft, std::string_view setting) {
  const std::string name = draft.text(setting);
  if (name.empty()) return;
  if (const std::string_view preset = preset_of(name); !preset.empty())
    return draft.set_text("model.preset", preset, setting);
  const std::string config = file_beside(draft.job(), (fs::path(name) / "config.json").string());
  if (!config.empty()) return draft.set_text("model.huggingface", fs::absolute(config).string(), setting);
  draft.ask("model", fmt::format("{} names {}, which is no preset here", setting, name),
            "--set model.huggingface=config.json (of that model), or --set model.preset=llama3-8b");
}

void read_training_arguments(JobFile& job, const JobSettings& settings, const ShellScript* script) {
  JobDraft draft(job, settings, huggingface_names(), script ? "--" : "");
  draft.translate();
  if (script) read_launcher(draft, *script);
  set_named_model(draft, draft.has("model_name_or_path") ? "model_name_or_path" : "config_name");
  if (!draft.has("per_device_train_batch_size")) draft.set("training.micro_batch", 8.0);  // the default
  set_batch(draft);
  set_precision(draft, "");
  set_optimizer(draft, "optim");
  set_attention(draft);
  set_recomputation(draft);
  if (draft.has("deepspeed"))
    set_deepspeed(draft, "deepspeed");
  else if (draft.on("fsdp"))
    set_fsdp(draft, "fsdp");
  else
    set_ddp(draft);
  refuse_adapters(draft);
  ask_rest(draft, "the file");
  draft.report();
}

void read_accelerate(JobFile& job, const JobSettings& settings) {
  JobDraft draft(job, settings, huggingface_names(), "");
  draft.translate();
  const std::string kind = draft.text("distributed_type", "NO");
  const double machines = draft.number("num_machines", 1, 1);
  job.devices = draft.number("num_processes", 1, 1);
  job.devices_per_node = job.devices / machines;
  draft.set("cluster.nodes", machines, "num_machines");
  set_batch(draft);
  set_precision(draft, draft.text("mixed_precision"));
  if (kind == "FSDP") {
    set_fsdp(draft, draft.has("fsdp_config.fsdp_sharding_strategy") ? "fsdp_config.fsdp_sharding_strategy"
                                                                    : "distributed_type");
  } else if (kind == "DEEPSPEED") {
    if (draft.has("deepspeed_config.deepspeed_config_file"))
      set_deepspeed(draft, "deepspeed_config.deepspeed_config_file");
    if (draft.has("deepspeed_config.zero_stage"))
      draft.set("strategy.zero_stage", draft.number("deepspeed_config.zero_stage", 2),
                "deepspeed_config.zero_stage");
    for (const auto& [name, key] :
         {std::pair("deepspeed_config.offload_optimizer_device", "strategy.offload"),
          {"deepspeed_config.offload_param_device", "strategy.offload_parameters"}})
      if (draft.has(name)) draft.set_text(key, draft.text(name), name);
  } else if (kind == "MEGATRON_LM") {
    const double tensor = draft.number("megatron_lm_config.megatron_lm_tp_degree", 1, 1);
    if (tensor > 1 && draft.on("megatron_lm_config.megatron_lm_sequence_parallelism"))
      draft.set("strategy.sequence_parallel", true, "megatron_lm_config.megatron_lm_sequence_parallelism");
    if (draft.on("megatron_lm_config.megatron_lm_use_distributed_optimizer"))
      draft.set("strategy.zero_stage", 1.0, "megatron_lm_config.megatron_lm_use_distributed_optimizer");
    if (draft.on("megatron_lm_config.megatron_lm_recompute_activations"))
      draft.set_text("training.recompute", "selective",
                     "megatron_lm_config.megatron_lm_recompute_activations");
    job.accumulation =
        std::max(job.accumulation, draft.number("megatron_lm_config.megatron_lm_num_micro_batches", 1));
    draft.set_text("training.framework", "megatron-2022", "distributed_type");
  } else if (kind == "MULTI_GPU" || kind == "NO") {
    set_ddp(draft);
  } else {
    draft.refuse(*draft.find("distributed_type"), "FSDP, DEEPSPEED, MEGATRON_LM, MULTI_GPU or NO");
  }
  set_recomputation(draft);
  if (const double replicas = draft.number("parallelism_config.parallelism_config_dp_replicate_size", 1, 1);
      replicas > 1 && kind == "FSDP") {
    draft.set_text("strategy.fsdp", "hybrid", "parallelism_config.parallelism_config_dp_replicate_size");
    job.replicas = replicas;
  }
  ask_rest(draft, "accelerate's configuration");
  draft.report();
}

void read_axolotl(JobFile& job, const JobSettings& settings) {
  JobDraft draft(job, settings, huggingface_names(), "");
  draft.translate();
  set_named_model(draft, "base_model");
  set_batch(draft);
  set_precision(draft, "");
  set_optimizer(draft, "optimizer");
  set_attention(draft);
  set_recomputation(draft);
  if (draft.has("deepspeed"))
    set_deepspeed(draft, "deepspeed");
  else if (draft.on("fsdp") || draft.has("fsdp_config.reshard_after_forward") || draft.has("fsdp_version") ||
           draft.has("dp_shard_size"))
    set_fsdp(draft, draft.has("fsdp_config.fsdp_sharding_strategy") ? "fsdp_config.fsdp_sharding_strategy"
                    : draft.has("fsdp")                             ? "fsdp"
                                                                    : "fsdp_version");
  else
    set_ddp(draft);
  if (const double replicas = draft.number("dp_replicate_size", 1, 1); replicas > 1) {
    draft.set_text("strategy.fsdp", "hybrid", "dp_replicate_size");
    job.replicas = replicas;
  }
  refuse_adapters(draft);
  ask_rest(draft, "the file");
  draft.report();
}

void read_model_config(JobFile& job, const std::string& path) {
  const JobSettings none;
  JobDraft draft(job, none, huggingface_names(), "");
  draft.set_text("model.huggingface", fs::absolute(path).string());
  draft.ask("training.micro_batch", "a model's config.json says nothing of the job",
            "--set training.micro_batch=1");
  draft.ask("training.global_batch", "neither", "--set training.global_batch=256");
}

}  // namespace rehearse
