// Writes the launch of Megatron-LM: torchrun and the arguments of pretrain_gpt.py, in one bash script for all
// nodes. Names and meanings of arguments: github.com/NVIDIA/Megatron-LM, tag core_v0.19.0,
// megatron/training/arguments.py and the dataclasses whose fields are arguments
// (megatron/core/transformer/transformer_config.py, megatron/core/model_parallel_config.py,
// megatron/training/config).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "simulator/jobs/launch/launch_parts.hpp"
#include "simulator/jobs/launch/megatron_model.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr int kHopper = 90;  // compute capability

// Returns "Et|(tt|)*6ttL", for example: the layers of all parts; E is the embedding, t a transformer layer, L
// the head. A repetition in parentheses contains complete parts (pipeline_parallel_layer_layout.py,
// parse_str_to_list).
std::string layout_text(const std::vector<ModelPart>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size();) {
    const ModelPart& part = parts[i];
    std::size_t alike = 1;
    const std::string layers(static_cast<std::size_t>(part.layers), 't');
    const bool plain = !part.embedding && !part.head;
    while (plain && i + alike < parts.size() && !parts[i + alike].head &&
           parts[i + alike].layers == part.layers)
      ++alike;
    if (alike > 1)
      text += fmt::format("({}|)*{}", layers, alike);
    else
      text += fmt::format("{}{}{}{}", part.embedding ? "E" : "", layers, part.head ? "L" : "",
                          i + 1 < parts.size() ? "|" : "");
    i += alike;
  }
  return text;
}

class MegatronWriter {
public:
  explicit MegatronWriter(const Scenario& scenario)
      : s_(scenario),
        strategy_(scenario.strategy),
        training_(scenario.training),
        t_(std::get<Transformer>(scenario.model.shape)),
        shards_(gradient_strategy(scenario)->shared_state(scenario)) {}

  LaunchFile write() {
    model_ = megatron_model(s_, cannot_);
    parallel();
    pipeline();
    experts();
    passes();
    sharding();
    batch();
    precision();
    memory();
    add_common_sentences(s_, kMegatron, cannot_);
    return {launch_name(s_, kMegatron, "sh"), text(), cannot_};
  }

private:
  bool fsdp() const { return shards_ && shards_->stage >= 2; }
  void cannot(std::string sentence) { cannot_.push_back(std::move(sentence)); }

  void parallel() {
    parallel_ = {megatron_argument("strategy.tensor", strategy_.tensor),
                 megatron_argument("strategy.pipeline", strategy_.pipeline),
                 megatron_argument("strategy.context", strategy_.context)};
    if (strategy_.context > 1) {
      const std::string_view kind = kContextKindNames[static_cast<std::size_t>(strategy_.context_kind)];
      parallel_.push_back(fmt::format("--cp-comm-type {}", word_of_value(kMegatronContextKinds, kind)));
      if (strategy_.context_kind == ContextKind::ring && !strategy_.zigzag && t_.causal)
        cannot("Megatron-LM gives each context rank a piece from either end of a sequence (zigzag = true).");
    }
    if (!placed_as(strategy_, {"tensor", "context", "data", "pipeline"})) {
      if (placed_as(strategy_, {"tensor", "context", "pipeline", "data"}))
        parallel_.emplace_back("--use-tp-pp-dp-mapping");
      else
        cannot(
            fmt::format("Megatron-LM orders ranks by tensor, context, data and pipeline, the innermost "
                        "first, or with data "
                        "last; placement = [\"{}\"] is left out.",
                        fmt::join(strategy_.placement, "\", \"")));
    }
    if (strategy_.tensor == 1) return;
    const bool mixture = t_.experts > 0;
    if (strategy_.sequence_parallel || mixture) parallel_.emplace_back("--sequence-parallel");
    if (mixture && !strategy_.sequence_parallel)
      cannot(
          "Megatron-LM trains mixtures with tensor parallelism only with sequence parallelism, which is "
          "written.");
    if (strategy_.tensor_overlap == TensorOverlap::chunks) {
      if (strategy_.sequence_parallel)
        parallel_.emplace_back("--tp-comm-overlap");
      else
        cannot(
            "Megatron-LM overlaps tensor communication and products in chunks (tensor_overlap = \"chunks\") "
            "only with sequence parallelism.");
    } else if (strategy_.tensor_overlap == TensorOverlap::none) {
      cannot(
          "Megatron-LM always computes gradients of weights during tensor communication (tensor_overlap = "
          "\"weight-gradients\").");
    }
    if (strategy_.scatter_gather && strategy_.pipeline > 1 && !strategy_.sequence_parallel)
      cannot(
          "Megatron Core has no scatter_gather: stages send full tensors unless sequence parallelism is on.");
  }

  void pipeline() {
    if (strategy_.pipeline == 1) return;
    const OrderEntry& order = order_of(strategy_.schedule);
    const bool interleaved = strategy_.virtual_stages > 1;
    const auto own = interleaved ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
    if (strategy_.schedule != own)
      cannot(fmt::format("Megatron-LM has no {} schedule; what is written runs {}.", order.title,
                         order_of(own).title));
    if (order.placement == PartPlacement::vee)
      cannot("Megatron-LM gives a stage every p-th part of the model, not one from either end.");
    if (order.mirrored)
      cannot(fmt::format(
          "Stages that hold the same parts of the model count as one: pipeline = {} and data = {} are "
          "written.",
          strategy_.pipeline, strategy_.data));
    const std::vector<ModelPart> parts = model_parts(s_);
    if (uneven(parts))
      parallel_.push_back(fmt::format("--pipeline-model-parallel-layout \"{}\"", layout_text(parts)));
    else if (interleaved)
      parallel_.push_back(fmt::format("--num-virtual-stages-per-pipeline-rank {}", strategy_.virtual_stages));
    if (interleaved && strategy_.microbatch_group > 0)
      parallel_.push_back(
          fmt::format("--microbatch-group-size-per-virtual-pipeline-stage {}", strategy_.microbatch_group));
    if (interleaved && strategy_.blocking_p2p) {
      if (strategy_.pipeline > 2)
        parallel_.emplace_back("--no-overlap-p2p-communication");
      else
        cannot("Megatron-LM's two stages with virtual ones do not wait for messages (blocking_p2p = false).");
    }
    if (!interleaved && !strategy_.blocking_p2p)
      cannot(
          "Megatron-LM's schedule without virtual stages waits for messages between stages (blocking_p2p = "
          "true).");
    if (training_.activation_precision != stored_precision(training_.precision))
      cannot(
          fmt::format("Megatron-LM sends activations between stages in the precision of the parameters, not "
                      "in {}.",
                      name_of(training_.activation_precision)));
  }

  void experts() {
    if (t_.experts == 0) return;
    parallel_.push_back(fmt::format("--expert-model-parallel-size {}", strategy_.expert));
    parallel_.push_back(fmt::format("--expert-tensor-parallel-size {}", strategy_.expert_tensor > 0
                                                                            ? strategy_.expert_tensor
                                                                            : strategy_.tensor));
    if (strategy_.expert_dispatch == ExpertDispatch::experts) {
      parallel_.emplace_back("--moe-token-dispatcher-type alltoall");
    } else {
      parallel_.emplace_back("--moe-token-dispatcher-type flex");
      parallel_.emplace_back("--moe-flex-dispatcher-backend deepep");
    }
    if (strategy_.capacity_factor > 0) {
      parallel_.push_back(megatron_argument("strategy.capacity_factor", strategy_.capacity_factor));
      parallel_.emplace_back("--moe-pad-expert-input-to-capacity");
    }
  }

  // Writes the arguments for a forward and a backward pass that take turns.
  void passes() {
    if (!strategy_.overlap_passes) return;
    const bool recomputes_layers =
        training_.recompute == Recompute::full || training_.recompute == Recompute::operators;
    if (strategy_.expert > 1 && !recomputes_layers &&
        stored_precision(training_.precision) != Precision::fp32 &&
        (strategy_.pipeline == 1 || strategy_.virtual_stages > 1)) {
      parallel_.emplace_back("--overlap-moe-expert-parallel-comm");
      overlaps_experts_ = true;
    } else {
      cannot(
          "Megatron-LM overlaps forward and backward passes (overlap_passes) only in 16 bits with expert "
          "parallelism, virtual stages and no recomputation of entire layers.");
    }
  }

  void sharding() {
    if (!shards_) {
      if (strategy_.data * strategy_.context > 1) overlap_gradients();
      return;
    }
    const bool adam = training_.optimizer == Optimizer::adam;
    if (shards_->stage == 1) {
      if (!adam) {
        cannot(
            "Megatron-LM's distributed optimizer is for Adam only: every rank keeps the full optimizer "
            "state.");
        overlap_gradients();
        return;
      }
      sync_.emplace_back("--use-distributed-optimizer");
      overlap_gradients();
      if (strategy_.overlap && shards_->prefetch > 0) sync_.emplace_back("--overlap-param-gather");
      return;
    }
    sync_ = {"--use-distributed-optimizer",
             "--use-megatron-fsdp",
             "--ckpt-format fsdp_dtensor",
             fmt::format("--data-parallel-sharding-strategy {}",
                         word_of_value(kMegatronShardedStages, std::to_string(shards_->stage))),
             "--overlap-grad-reduce",
             "--overlap-param-gather"};
    if (shards_->replicas > 1)
      sync_.push_back(fmt::format("--num-distributed-optimizer-instances {}", shards_->replicas));
    if (shards_->stage == 3) sync_.emplace_back("--init-model-with-meta-device");
    if (!strategy_.overlap || shards_->prefetch == 0)
      cannot("Megatron-FSDP always gathers weights and reduces gradients during the passes.");
    if (!shards_->reshard)
      cannot("Megatron-FSDP has no argument that keeps weights from the forward to the backward pass.");
  }

  void overlap_gradients() {
    if (!strategy_.overlap) {
      cannot(
          "Without overlap Megatron-LM reduces all gradients of a stage at once: bucket_mb has no effect.");
      return;
    }
    sync_.emplace_back("--overlap-grad-reduce");
    sync_.push_back(fmt::format("--ddp-bucket-size {:.0f}", bucket_elements(s_)));
    if (strategy_.first_bucket_bytes < strategy_.bucket_bytes)
      cannot("Megatron-LM has no smaller first bucket of gradients (first_bucket_mb).");
  }

  void batch() {
    batch_ = {megatron_argument("training.micro_batch", training_.micro_batch),
              megatron_argument("training.global_batch", training_.global_batch),
              megatron_argument("training.sequence_length", sequence_tokens(s_)),
              "--train-iters \"$TRAIN_ITERS\"", "--lr \"$LR\""};
    if (training_.optimizer == Optimizer::adam) {
      batch_.emplace_back("--optimizer adam");
    } else {
      batch_.emplace_back("--optimizer sgd");
      // As in backend/training/optimizer.hpp.
      batch_.emplace_back(training_.optimizer == Optimizer::momentum ? "--sgd-momentum 0.9"
                                                                     : "--sgd-momentum 0");
    }
    if (strategy_.compression.kind != Compression::none)
      cannot(fmt::format("Megatron-LM does not compress gradients (compression = \"{}\").",
                         kCompressionNames[static_cast<std::size_t>(strategy_.compression.kind)]));
  }

  void precision() {
    switch (training_.precision) {
      case Precision::fp32:
      case Precision::tf32:
        break;
      case Precision::fp16:
        batch_.emplace_back("--fp16");
        break;
      case Precision::bf16:
        batch_.emplace_back("--bf16");
        break;
      case Precision::fp8:  // one scale per tensor, as in models/precision.hpp
        batch_.insert(batch_.end(), {"--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"});
        break;
      case Precision::mxfp8:
        batch_.insert(batch_.end(), {"--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"});
        break;
      case Precision::nvfp4:
        batch_.insert(batch_.end(), {"--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"});
        break;
    }
    const bool offloads = strategy_.offload.optimizer != OffloadTo::none;
    if (s_.framework.narrow_gathers && casts_operands(training_.precision) && shards_ && !offloads)
      batch_.emplace_back(training_.precision == Precision::nvfp4 ? "--fp4-param-gather"
                                                                  : "--fp8-param-gather");
    const Precision stored = stored_precision(training_.precision), sent = training_.gradient_precision;
    if (stored == Precision::bf16 && sent == Precision::bf16)
      batch_.emplace_back("--grad-reduce-in-bf16");
    else if (stored != Precision::fp32 && sent == Precision::fp32)
      batch_.emplace_back("--accumulate-allreduce-grads-in-fp32");
    else if (stored != sent)
      cannot(fmt::format("Megatron-LM does not reduce gradients in {} where it trains in {}.", name_of(sent),
                         name_of(stored)));
  }

  void memory() {
    const bool fused = training_.attention != AttentionKernels::unfused;
    memory_.emplace_back(fused ? "--attention-backend flash" : "--attention-backend unfused");
    switch (training_.recompute) {
      case Recompute::none:
        break;
      case Recompute::selective:
        if (fused) break;  // there are no scores to recompute
        memory_.insert(memory_.end(), {"--recompute-granularity selective", "--recompute-modules core_attn"});
        if (training_.recompute_layers > 0)
          cannot("Megatron-LM recomputes unfused attention in all layers (recompute_layers).");
        break;
      case Recompute::operators:
        cannot(
            "Megatron-LM cannot recompute every second matrix product (recompute = \"operators\"): nothing "
            "is recomputed, which takes more memory.");
        break;
      case Recompute::full:
        memory_.emplace_back("--recompute-granularity full");
        memory_.emplace_back(training_.recompute_layers > 0 ? "--recompute-method block"
                                                            : "--recompute-method uniform");
        memory_.push_back(fmt::format("--recompute-num-layers {}", std::max(1, training_.recompute_layers)));
        break;
    }
    if (strategy_.offload.optimizer == OffloadTo::cpu && shards_ && shards_->stage == 1 &&
        training_.optimizer == Optimizer::adam)
      memory_.insert(memory_.end(), {"--optimizer-cpu-offload", "--use-precision-aware-optimizer"});
    else if (strategy_.offload.optimizer != OffloadTo::none)
      cannot(
          "Megatron-LM keeps optimizer state off the device only in host memory, and for its distributed "
          "optimizer with Adam (zero_stage = 1): all of it stays on the device.");
    if (strategy_.offload.parameters != OffloadTo::none)
      cannot("Megatron-LM keeps weights on the device (offload_parameters).");
    if (training_.fused_loss)
      memory_.insert(memory_.end(), {"--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl te"});
    if (training_.cuda_graphs) graphs();
  }

  void graphs() {
    if (t_.experts == 0) {
      memory_.insert(memory_.end(),
                     {"--cuda-graph-impl full_iteration", "--no-check-for-nan-in-loss-and-grad"});
    } else if (training_.recompute == Recompute::full) {
      cannot("Megatron-LM has no CUDA graphs of a mixture whose layers are recomputed (cuda_graphs).");
    } else {
      memory_.insert(memory_.end(), {"--cuda-graph-impl transformer_engine",
                                     "--cuda-graph-modules attn moe_router moe_preprocess"});
      if (s_.framework.graphs_hold_experts)
        cannot(
            "What is written leaves the kernels of experts out of CUDA graphs, because their number of rows "
            "is not known in advance.");
    }
  }

  // Returns the environment variables that the arguments need to have their effect.
  std::string environment() const {
    std::string lines;
    // validate_args() requires it for tensor and context parallelism before Blackwell, and forbids it for
    // FSDP.
    const bool old = s_.cluster->node().device.compute_capability <= kHopper;
    if (fsdp())
      lines += "unset CUDA_DEVICE_MAX_CONNECTIONS\n";
    else if (overlaps_experts_)
      lines += "export CUDA_DEVICE_MAX_CONNECTIONS=32\n";
    else if (old)
      lines += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
    if (training_.precision == Precision::tf32) lines += "export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1\n";
    if (training_.blocking_launches) lines += "export CUDA_LAUNCH_BLOCKING=1\n";
    return lines;
  }

  std::string text() const {
    const int nodes = s_.cluster->nodes();
    std::vector<std::string> more = {
        fmt::format(
            "Run it in Megatron-LM's folder{}, with TRAIN_ITERS (optimizer steps) and LR (learning rate) "
            "set. DATA_ARGS names the data and the tokenizer; without it the data are synthetic, to "
            "measure speed.",
            nodes > 1 ? " on every node, with NODE_RANK and MASTER_ADDR" : ""),
        "Settings that do not change the speed, such as initialization, rotary base and learning-rate "
        "schedule, are left to Megatron-LM's defaults."};
    std::string text = "#!/bin/bash\n" + head_comment(s_, kMegatron, more, cannot_) + "set -euo pipefail\n\n";
    text += ": \"${TRAIN_ITERS:?optimizer steps}\" \"${LR:?learning rate}\"\n";
    std::string nodes_line = "--standalone --nnodes 1";
    if (nodes > 1) {
      text += fmt::format(
          ": \"${{NODE_RANK:?number of this node, 0 to {}}}\" \"${{MASTER_ADDR:?address of "
          "node 0}}\"\n",
          nodes - 1);
      nodes_line = fmt::format(
          "--nnodes {} --node-rank \"$NODE_RANK\" --master-addr \"$MASTER_ADDR\" --master-port "
          "\"${{MASTER_PORT:-29500}}\"",
          nodes);
    }
    text += fmt::format(
        "read -r -a data <<< \"${{DATA_ARGS:---mock-data --tokenizer-type NullTokenizer "
        "--vocab-size {:.0f}}}\"\n",
        t_.vocabulary);
    text += environment() + "\n";
    std::string used;
    const std::pair<std::string_view, const std::vector<std::string>*> arrays[] = {{"model", &model_},
                                                                                   {"parallel", &parallel_},
                                                                                   {"gradients", &sync_},
                                                                                   {"training", &batch_},
                                                                                   {"memory", &memory_}};
    for (const auto& [name, lines] : arrays) {
      if (lines->empty()) continue;
      text += fmt::format("{}=(\n  {}\n)\n", name, fmt::join(*lines, "\n  "));
      used += fmt::format("\"${{{}[@]}}\" ", name);
    }
    text += fmt::format(
        "\nexec torchrun {} \\\n  --nproc-per-node {} pretrain_gpt.py \\\n  {}\"${{data[@]}}\" \"$@\"\n",
        nodes_line, s_.cluster->node().devices, used);
    return text;
  }

  const Scenario& s_;
  const StrategyChoice& strategy_;
  const Training& training_;
  const Transformer& t_;
  const std::optional<SharedState> shards_;
  bool overlaps_experts_ = false;
  std::vector<std::string> model_, parallel_, sync_, batch_, memory_;  // arguments
  std::vector<std::string> cannot_;
};

std::vector<std::string> megatron_refusals(const Scenario& scenario) {
  std::vector<std::string> reasons = common_refusals(scenario, kMegatron);
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  if (!t || !t->causal)
    reasons.emplace_back("pretrain_gpt.py of Megatron-LM trains transformers that predict the next token.");
  if (!t) return reasons;
  for (std::string& reason : not_a_megatron_model(*t)) reasons.push_back(std::move(reason));
  const int context = scenario.strategy.context;
  if (context > 1 && std::fmod(sequence_tokens(scenario), 2.0 * context) != 0)
    reasons.push_back(fmt::format(
        "Megatron-LM cuts sequences into 2 x context = {} pieces, and {} tokens are not a multiple of it.",
        2 * context, sequence_tokens(scenario)));
  const StrategyChoice& strategy = scenario.strategy;
  if (t->experts > 0 && t->biases &&
      (strategy.expert_tensor > 0 ? strategy.expert_tensor : strategy.tensor) > 1)
    reasons.emplace_back(
        "Megatron-LM splits experts by tensor ranks only where they have no biases; expert_tensor = 1 does "
        "not split them.");
  const int stages = strategy.pipeline;
  if (stages > 1 && strategy.virtual_stages > 1 &&
      !fits_groups(
          order_of(PipelineSchedule::interleaved),
          {.stages = stages, .microbatches = scenario.microbatches, .group = strategy.microbatch_group}))
    reasons.push_back(fmt::format(
        "Megatron-LM's schedule with virtual stages takes a multiple of pipeline = {} micro-batches a "
        "step, and there are {}.",
        stages, scenario.microbatches));
  return reasons;
}

}  // namespace

LaunchFile megatron_launch(const Scenario& scenario) {
  if (std::vector<std::string> reasons = megatron_refusals(scenario); !reasons.empty())
    return {launch_name(scenario, kMegatron, "sh"), "", std::move(reasons), false};
  return MegatronWriter(scenario).write();
}

}  // namespace rehearse
