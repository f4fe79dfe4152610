// Writes DeepSpeed's JSON configuration. The model, its pipeline and its recomputation are Python code of the
// training program, so the settings that belong there are described in sentences. Keys and meanings:
// github.com/deepspeedai/DeepSpeed, tag v0.19.5, deepspeed/runtime/config.py, constants.py, zero/config.py
// and zero/offload_config.py, precision_config.py, tensor_parallel/config.py, pipe/engine.py.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "simulator/jobs/launch/launch_parts.hpp"
#include "simulator/report/json.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNvmePath = "/local_nvme";  // to be replaced by the path on the machines

std::string_view name_of(OffloadTo to) {
  return kOffloadNames[static_cast<std::size_t>(to)];
}

class DeepspeedWriter {
public:
  explicit DeepspeedWriter(const Scenario& scenario)
      : s_(scenario),
        strategy_(scenario.strategy),
        training_(scenario.training),
        shards_(gradient_strategy(scenario)->shared_state(scenario)) {}

  LaunchFile write() {
    cannot(fmt::format("The configuration holds no model: the training program builds {} for {} GPUs.",
                       s_.model.title, s_.cluster->devices()));
    batch();
    optimizer();
    precision();
    json_["zero_optimization"] = zero();
    axes();
    experts();
    recomputation();
    if (training_.cuda_graphs)
      cannot("DeepSpeed's engine launches no CUDA graphs in training (cuda_graphs).");
    if (training_.fused_loss)
      cannot("fused_loss is the training script's: Liger Kernel or Transformer Engine has such a loss.");
    if (training_.blocking_launches)
      cannot("blocking_launches is the environment variable CUDA_LAUNCH_BLOCKING=1.");
    add_common_sentences(s_, kDeepspeed, cannot_);
    return {launch_name(s_, kDeepspeed, "json"), json_text(json_, 2) + "\n", cannot_};
  }

private:
  void cannot(std::string sentence) { cannot_.push_back(std::move(sentence)); }
  static std::string name(std::string_view key) { return std::string(name_of_key(deepspeed_names(), key)); }
  int stage() const { return shards_ ? shards_->stage : 0; }
  // Returns whether DeepSpeed itself creates the tensor ranks, by splitting the layers of a model that does
  // not.
  bool splits_layers() const { return strategy_.tensor > 1 && strategy_.pipeline == 1; }

  void batch() {
    if (splits_layers())
      cannot(
          "train_batch_size is left out: DeepSpeed would count tensor ranks in, because it learns of them "
          "only later.");
    else
      json_[name("training.global_batch")] = static_cast<std::int64_t>(training_.global_batch);
    json_[name("training.micro_batch")] = static_cast<std::int64_t>(training_.micro_batch);
    json_["gradient_accumulation_steps"] = s_.microbatches;
  }

  void optimizer() {
    const bool adam = training_.optimizer == Optimizer::adam;
    Json optimizer = {{"type", adam ? "AdamW" : "SGD"}, {"params", Json::object()}};
    if (training_.optimizer == Optimizer::momentum)
      optimizer["params"]["momentum"] = 0.9;  // as in backend/training/optimizer.hpp
    const CompressionChoice& compression = strategy_.compression;
    if (compression.kind == Compression::one_bit && adam) {
      optimizer["type"] = "OneBitAdam";
      cannot("1-bit Adam sends full gradients in its first steps (freeze_step).");
    } else if (compression.kind != Compression::none && compression.kind != Compression::fp16) {
      cannot(
          fmt::format("DeepSpeed does not compress gradients by \"{}\" (compression): they are sent in full.",
                      kCompressionNames[static_cast<std::size_t>(compression.kind)]));
    }
    cannot("The learning rate is not the scenario's: add it to optimizer.params as lr.");
    json_["optimizer"] = std::move(optimizer);
    if (!adam && stage() > 0) json_["zero_allow_untested_optimizer"] = true;  // torch.optim's
  }

  void precision() {
    const Precision stored = stored_precision(training_.precision);
    if (stored != Precision::fp32) json_[std::string(rehearse::name_of(stored))] = {{"enabled", true}};
    const bool halves = strategy_.compression.kind == Compression::fp16;
    json_[name("training.gradient_precision")] =
        halves ? "fp16" : rehearse::name_of(training_.gradient_precision);
    if (casts_operands(training_.precision))
      cannot(fmt::format(
          "DeepSpeed has no setting for {}: the model's layers have to compute in it (Transformer "
          "Engine).",
          rehearse::name_of(training_.precision)));
    if (training_.precision == Precision::tf32)
      cannot("TF32 is PyTorch's setting: torch.set_float32_matmul_precision(\"high\").");
  }

  Json zero() {
    Json zero = {{"stage", stage()}};
    if (stage() == 0) {
      if (strategy_.overlap)
        cannot(
            "Without ZeRO DeepSpeed reduces gradients after the last backward pass, in its own buckets: "
            "overlap and bucket_mb have no effect.");
      return zero;
    }
    const bool pipeline = strategy_.pipeline > 1;
    if (pipeline && strategy_.overlap)
      cannot("DeepSpeed's pipeline engine reduces gradients after the last backward pass (overlap = false).");
    zero["overlap_comm"] = strategy_.overlap && !pipeline;
    zero["contiguous_gradients"] = true;
    zero["reduce_bucket_size"] = static_cast<std::int64_t>(bucket_elements(s_));
    if (strategy_.first_bucket_bytes < strategy_.bucket_bytes)
      cannot("DeepSpeed has no smaller first bucket of gradients (first_bucket_mb).");
    if (stage() == 3) {
      zero["stage3_prefetch_bucket_size"] =
          static_cast<std::int64_t>(shards_->prefetch * largest_layer_parameters());
      if (!shards_->reshard) {  // parameters that are used again are not released
        const auto all = static_cast<std::int64_t>(parameter_count(s_.model));
        zero["stage3_max_live_parameters"] = all;
        zero["stage3_max_reuse_distance"] = all;
      }
      if (shards_->replicas > 1) {
        zero["mics_shard_size"] = shards_->shards;
        cannot(
            "Shards in groups of ranks are MiCS: the program builds the model under "
            "deepspeed.zero.MiCS_Init.");
      }
    } else if (shards_->prefetch > 0 && strategy_.overlap) {
      cannot(
          "DeepSpeed gathers updated weights at the end of the step, not during the next forward pass "
          "(prefetch).");
    }
    offload(zero);
    return zero;
  }

  void offload(Json& zero) {
    const auto add = [&](const char* key, OffloadTo to) {
      if (to == OffloadTo::none) return;
      Json place = {{"device", name_of(to)}, {"pin_memory", true}};
      if (to == OffloadTo::nvme) place["nvme_path"] = kNvmePath;
      zero[key] = std::move(place);
    };
    OffloadTo optimizer = strategy_.offload.optimizer;
    if (optimizer == OffloadTo::nvme && stage() < 3) {
      cannot("DeepSpeed keeps optimizer state on NVMe only at stage 3: the configuration names host memory.");
      optimizer = OffloadTo::cpu;
    }
    add("offload_optimizer", optimizer);
    if (optimizer == OffloadTo::nvme)  // reads and writes overlap with the update
      for (const char* key : {"pipeline_read", "pipeline_write"}) zero["offload_optimizer"][key] = true;
    add("offload_param", strategy_.offload.parameters);
    if (optimizer == OffloadTo::nvme || strategy_.offload.parameters == OffloadTo::nvme)
      cannot(fmt::format("nvme_path is an example, \"{}\": replace it with the NVMe path of the machines.",
                         kNvmePath));
    if (optimizer != OffloadTo::none && training_.optimizer != Optimizer::adam)
      json_["zero_force_ds_cpu_optimizer"] = false;  // DeepSpeed's own update on processors is Adam
  }

  // Counts the parameters on one device.
  double largest_layer_parameters() const {
    double most = 0;
    for (const LayerCost& layer : layer_costs(s_.model, pass_shape(s_)))
      most = std::max(most, layer.parameters);
    return most;
  }

  void axes() {
    if (strategy_.pipeline > 1) {
      cannot(fmt::format(
          "Pipelines are not in the configuration: the program wraps the model's layers in "
          "deepspeed.pipe.PipelineModule(layers, topology=PipeModelDataParallelTopology(num_pp={}, "
          "num_mp={}, num_dp={})).",
          strategy_.pipeline, strategy_.tensor, strategy_.data));
      if (strategy_.schedule != PipelineSchedule::one_f_one_b || strategy_.virtual_stages > 1)
        cannot(fmt::format(
            "DeepSpeed's pipeline engine runs 1F1B with one part of the model a stage, and has no "
            "{} schedule.",
            order_of(strategy_.schedule).title));
      if (!strategy_.stage_layers.empty())
        cannot("Stages are cut by partition_method of PipelineModule: it takes no stage_layers.");
    }
    if (splits_layers()) {
      json_["tensor_parallel"] = {{"autotp_size", strategy_.tensor}};
      cannot("Tensor parallelism by DeepSpeed (autotp_size) takes a Hugging Face model.");
    } else if (strategy_.tensor > 1) {
      cannot("The layers in the pipeline have to be tensor parallel themselves, as Megatron-LM's are.");
    }
    if (strategy_.tensor > 1 && strategy_.sequence_parallel)
      cannot("DeepSpeed's tensor parallelism has no sequence parallelism (sequence_parallel).");
    if (strategy_.context > 1) {
      json_[name("strategy.context")] = strategy_.context;
      json_["data_parallel_size"] = strategy_.data;
      cannot(
          "The model's attention has to be wrapped for sequences that are split "
          "(deepspeed.sequence.layer.DistributedAttention).");
      if (strategy_.context_kind != ContextKind::all_to_all)
        cannot(fmt::format(
            "DeepSpeed splits sequences by all-to-all (Ulysses), and has no context_kind = \"{}\".",
            kContextKindNames[static_cast<std::size_t>(strategy_.context_kind)]));
    }
  }

  void experts() {
    const auto* t = std::get_if<Transformer>(&s_.model.shape);
    if (!t || t->experts == 0) return;
    cannot(fmt::format(
        "Experts are the program's: deepspeed.moe.layer.MoE(num_experts={}, ep_size={}, k={}{}).", t->experts,
        strategy_.expert, t->experts_per_token,
        strategy_.capacity_factor > 0 ? fmt::format(", capacity_factor={}", strategy_.capacity_factor)
                                      : ", drop_tokens=False"));
    if (strategy_.expert_tensor > 1 && strategy_.expert_tensor != strategy_.tensor)
      cannot("DeepSpeed's experts are split by all tensor ranks or by none (expert_tensor).");
  }

  void recomputation() {
    if (training_.recompute == Recompute::none) return;
    json_["activation_checkpointing"] = {{"partition_activations", false}, {"cpu_checkpointing", false}};
    std::string what = "entire layers";
    if (training_.recompute == Recompute::selective) what = "attention";
    if (training_.recompute == Recompute::operators) what = "every second matrix product";
    cannot(fmt::format(
        "The program decides what is recomputed: it calls deepspeed.checkpointing.checkpoint for {}{}.", what,
        training_.recompute_layers > 0
            ? fmt::format(" in the first {} layers of a stage", training_.recompute_layers)
            : ""));
  }

  const Scenario& s_;
  const StrategyChoice& strategy_;
  const Training& training_;
  const std::optional<SharedState> shards_;
  Json json_;
  std::vector<std::string> cannot_;
};

std::vector<std::string> refusals(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  std::vector<std::string> reasons = common_refusals(scenario, kDeepspeed);
  const auto shards = gradient_strategy(scenario)->shared_state(scenario);
  if (strategy.pipeline > 1 && shards && shards->stage >= 2)
    reasons.push_back(fmt::format(
        "DeepSpeed's pipeline engine refuses ZeRO from stage 2 on, and this is stage {}.", shards->stage));
  if (strategy.context > 1 && (strategy.pipeline > 1 || strategy.tensor > 1))
    reasons.emplace_back(
        "DeepSpeed's meshes split sequences with data parallelism only, not with tensor ranks or a "
        "pipeline.");
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  if (strategy.context > 1 && t && std::fmod(t->heads, strategy.context) != 0)
    reasons.push_back(fmt::format("DeepSpeed splits heads by context = {}, which does not divide {} of them.",
                                  strategy.context, t->heads));
  return reasons;
}

}  // namespace

LaunchFile deepspeed_launch(const Scenario& scenario) {
  if (std::vector<std::string> reasons = refusals(scenario); !reasons.empty())
    return {launch_name(scenario, kDeepspeed, "json"), "", std::move(reasons), false};
  return DeepspeedWriter(scenario).write();
}

}  // namespace rehearse
