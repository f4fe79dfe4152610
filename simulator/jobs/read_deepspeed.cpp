// Reads DeepSpeed's JSON configuration: sources and defaults in deepspeed_names.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "simulator/jobs/job_readers.hpp"

namespace rehearse {
namespace {

constexpr double kDefaultLive = 1e9;  // stage3_max_live_parameters and stage3_max_reuse_distance

bool is_auto(const JobDraft& draft, std::string_view name) {
  return draft.text(name) == "auto";
}

void zero(JobDraft& draft) {
  const auto name = [](std::string_view key) { return "zero_optimization." + std::string(key); };
  const double stage = draft.number(name("stage"), 0);
  if (stage > 3) draft.refuse(*draft.find(name("stage")), "0 to 3");
  if (stage == 0) {
    draft.set("strategy.overlap",
              false);  // gradients go after the last backward pass (engine.py, allreduce_gradients)
    return;
  }
  draft.set_text("training.framework", "deepspeed-2024", name("stage"));
  draft.set("strategy.overlap", draft.on(name("overlap_comm"), stage == 3), name("overlap_comm"));
  if (stage < 3) draft.set("strategy.prefetch", 0.0);  // updated weights are gathered at the end of the step
  const double bytes = draft.text("communication_data_type") == "fp32" ? 4 : 2;
  if (const double elements = draft.number(name("reduce_bucket_size"), 0); elements > 0)
    draft.set("strategy.bucket_mb", elements * bytes / 1048576, name("reduce_bucket_size"));
  for (const char* key : {"mics_shard_size", "zero_hpz_partition_size"}) {
    const double group = draft.number(name(key), 0);
    if (stage < 3 || group <= 1) continue;
    draft.set_text("strategy.fsdp", "hybrid", name(key));
    draft.set("strategy.shard_degree", group, name(key));
    std::erase_if(draft.job().keys, [](const JobKey& one) { return one.key == "strategy.zero_stage"; });
    if (std::string_view(key) == "zero_hpz_partition_size")
      draft.note(
          "zero_hpz_partition_size shards a second copy of the weights over groups, and optimizer state over "
          "all "
          "ranks; here groups hold everything.");
  }
  if (stage == 3) {
    const std::string prefetch = name("stage3_prefetch_bucket_size");
    if (draft.has(prefetch) && !is_auto(draft, prefetch))
      draft.set("strategy.prefetch", draft.number(prefetch, 1) > 0 ? 1.0 : 0.0, prefetch);
    const bool keeps = draft.number(name("stage3_max_live_parameters"), kDefaultLive) > kDefaultLive &&
                       draft.number(name("stage3_max_reuse_distance"), kDefaultLive) > kDefaultLive;
    if (keeps) draft.set("strategy.reshard_after_forward", false, name("stage3_max_reuse_distance"));
  }
  std::string optimizer = draft.text(name("offload_optimizer.device")),
              parameters = draft.text(name("offload_param.device"));
  for (std::string* one : {&optimizer, &parameters})
    if (*one == "none") one->clear();
  if (draft.on(name("cpu_offload"))) optimizer = "cpu";
  if (draft.on(name("cpu_offload_params"))) parameters = "cpu";
  for (const std::string* one : {&optimizer, &parameters})
    if (!one->empty() && *one != "cpu" && *one != "nvme") {
      const JobSetting* setting =
          draft.find(name(one == &optimizer ? "offload_optimizer.device" : "offload_param.device"));
      if (setting) draft.refuse(*setting, "cpu, nvme or none");
    }
  if (!optimizer.empty()) draft.set_text("strategy.offload", optimizer, name("offload_optimizer.device"));
  if (!parameters.empty() && !optimizer.empty())
    draft.set_text("strategy.offload_parameters", parameters, name("offload_param.device"));
  else if (!parameters.empty())
    draft.note("Weights off the device (offload_param) need offload_optimizer here, and stay on the device.");
}

void precision(JobDraft& draft, bool alone) {
  const bool bf16 = draft.on("bf16.enabled") || draft.on("bfloat16.enabled"), fp16 = draft.on("fp16.enabled");
  const bool open = is_auto(draft, "bf16.enabled") || is_auto(draft, "fp16.enabled");
  if (open)
    draft.note(
        "The precision is \"auto\": the one that the device has is taken (--set training.precision=bf16).");
  else if (bf16 || fp16 || alone)
    draft.set_text("training.precision",
                   bf16   ? "bf16"
                   : fp16 ? "fp16"
                          : "fp32",
                   bf16 ? "bf16.enabled" : "fp16.enabled");
}

void optimizer(JobDraft& draft) {
  std::string type = draft.text("optimizer.type");
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (type == "sgd")
    draft.set_text("training.optimizer",
                   draft.number("optimizer.params.momentum", 0) > 0 ? "momentum" : "sgd", "optimizer.type");
  else if (type == "onebitadam")
    draft.set_text("strategy.compression", "one-bit", "optimizer.type");
  else if (!type.empty() && type.find("adam") == std::string::npos)
    draft.note(fmt::format("The optimizer {} is counted as Adam.", draft.text("optimizer.type")));
}

void axes(JobDraft& draft) {
  if (draft.number("sequence_parallel_size", 1) > 1)
    draft.set_text("strategy.context_kind", "all-to-all", "sequence_parallel_size");
  if (const std::string stages = draft.text("pipeline.stages"); !stages.empty() && stages != "auto")
    draft.set("strategy.pipeline", draft.number("pipeline.stages", 1, 1), "pipeline.stages");
}

// Sets what follows from batch, micro-batch and accumulation steps, of which two are enough.
void batch(JobDraft& draft) {
  const double global = draft.number("train_batch_size", 0),
               micro = draft.number("train_micro_batch_size_per_gpu", 0);
  const double steps = draft.number("gradient_accumulation_steps", 0);
  if (micro == 0)
    draft.ask("training.micro_batch",
              is_auto(draft, "train_micro_batch_size_per_gpu") ? "train_micro_batch_size_per_gpu is \"auto\""
                                                               : "there is no train_micro_batch_size_per_gpu",
              "--set training.micro_batch=1");
  if (global == 0 && is_auto(draft, "train_batch_size") && steps == 0)
    draft.ask("training.global_batch", "train_batch_size is \"auto\"", "--set training.global_batch=256");
  if (global == 0) draft.job().accumulation = std::max(1.0, steps);
  const double tensor = std::max(1.0, draft.number("tensor_parallel.autotp_size", 1));
  const double others = tensor * std::max(1.0, draft.number("sequence_parallel_size", 1)) *
                        std::max(1.0, draft.number("pipeline.stages", 1));
  if (global > 0 && micro > 0 && steps > 0) draft.job().devices = global / (micro * steps) * others;
  if (draft.number("data_parallel_size", 0) > 0)
    draft.job().devices = draft.number("data_parallel_size", 0) * others;
}

}  // namespace

void read_deepspeed(JobFile& job, const JobSettings& settings) {
  JobDraft draft(job, settings, deepspeed_names(), "");
  draft.translate();
  batch(draft);
  zero(draft);
  precision(draft, true);
  optimizer(draft);
  axes(draft);
  for (const JobSetting& one : settings)
    if (one.name.rfind("activation_checkpointing.", 0) == 0) {
      draft.note(
          "Whether activations are recomputed is the training program's choice: nothing is (--set "
          "training.recompute=full).");
      break;
    }
  draft.ask("training.sequence_length", "DeepSpeed's configuration does not say it",
            "--set training.sequence_length=4096");
  draft.report();
}

void read_deepspeed_part(JobDraft& outer, const JobSettings& settings) {
  JobFile part;
  part.path = outer.job().path;
  JobDraft draft(part, settings, deepspeed_names(), "");
  draft.translate();
  zero(draft);
  precision(draft, false);
  optimizer(draft);
  axes(draft);
  for (const JobKey& one : part.keys) {
    const bool batches = one.key == "training.global_batch" || one.key == "training.micro_batch";
    const auto same = [&](const JobKey& other) { return other.key == one.key; };
    auto& keys = outer.job().keys;
    if (batches && std::any_of(keys.begin(), keys.end(), same)) continue;
    std::erase_if(keys, same);
    keys.push_back(one);
  }
  outer.job().notes.insert(outer.job().notes.end(), part.notes.begin(), part.notes.end());
}

}  // namespace rehearse
