// Writes torchtitan's job configuration. Keys and meanings: github.com/pytorch/torchtitan, tag v0.2.2, the
// last release whose jobs are TOML files: torchtitan/config/job_config.py, distributed/parallel_dims.py,
// distributed/pipeline_parallel.py, models/*/infra/parallelize.py, components/quantization.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "models/text/printable.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/jobs/launch/launch_parts.hpp"
#include "simulator/jobs/torchtitan_flavors.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr double kBucketBytes = 100 * 1048576.0;  // models/llama3/infra/parallelize.py, apply_ddp
constexpr int kBlackwell = 100;                   // compute capability

// How the ranks with the same weights shard them, in torchtitan's terms.
struct DataDegrees {
  int replicate = 1, shard = 1;
};

// Shards are first spread over context ranks, which hold the same weights; nullopt if they end among these.
std::optional<DataDegrees> data_degrees(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const auto shards = gradient_strategy(scenario)->shared_state(scenario);
  if (!shards) return DataDegrees{strategy.data, 1};
  if (shards->shards % strategy.context != 0) return std::nullopt;
  const int shard = shards->shards / strategy.context;
  return DataDegrees{strategy.data / shard, shard};
}

// Returns the ranks that share an expert's products; torchtitan only supports this if experts are
// distributed.
int expert_tensor_degree(const StrategyChoice& strategy) {
  if (strategy.expert == 1) return 1;
  return strategy.expert_tensor > 0 ? strategy.expert_tensor : strategy.tensor;
}

class TorchtitanWriter {
public:
  TorchtitanWriter(const Scenario& scenario, TorchtitanModel model)
      : s_(scenario),
        strategy_(scenario.strategy),
        training_(scenario.training),
        t_(std::get<Transformer>(scenario.model.shape)),
        model_(std::move(model)),
        shards_(gradient_strategy(scenario)->shared_state(scenario)) {}

  LaunchFile write() {
    std::string text = table("job", {entry("description", toml_string(job_title(s_)))});
    // One statement each: operands of + can be evaluated in any order, and these add sentences to cannot_.
    text += model();
    text += optimizer();
    text += training();
    text += parallelism();
    text += recomputation();
    text += compilation();
    text += quantization();
    if (training_.attention == AttentionKernels::unfused)
      cannot("torchtitan always computes attention by fused kernels (attention = \"unfused\").");
    if (training_.cuda_graphs) cannot("torchtitan launches no CUDA graphs (cuda_graphs).");
    if (training_.fused_loss)
      cannot("torchtitan has no loss that overwrites the logits (fused_loss): its loss is compiled.");
    if (training_.blocking_launches)
      cannot("blocking_launches is the environment variable CUDA_LAUNCH_BLOCKING=1.");
    add_common_sentences(s_, kTorchtitan, cannot_);
    const std::string head = head_comment(
        s_, kTorchtitan,
        {fmt::format("Run it on {} of {} GPUs with torchrun -m torchtitan.train --job.config_file FILE. Add "
                     "model.hf_assets_path, training.dataset and training.steps.",
                     s_.cluster->nodes() == 1 ? "one node" : fmt::format("{} nodes", s_.cluster->nodes()),
                     s_.cluster->node().devices)},
        cannot_);
    return {launch_name(s_, kTorchtitan, "toml"), head + text, cannot_};
  }

private:
  using Lines = std::vector<std::string>;

  void cannot(std::string sentence) { cannot_.push_back(std::move(sentence)); }

  template <typename Value>
  static std::string entry(std::string_view key, const Value& value) {
    return fmt::format("{} = {}", key, value);
  }
  static std::string text_entry(std::string_view key, std::string_view value) {
    return entry(key, toml_string(std::string(value)));
  }
  static std::string table(std::string_view name, const Lines& lines) {
    return fmt::format("\n[{}]\n{}\n", name, fmt::join(lines, "\n"));
  }

  std::string model() {
    Lines lines = {text_entry("name", model_.name), text_entry("flavor", model_.flavor)};
    if (!model_.registration.empty())
      cannot(
          fmt::format("torchtitan has no model of these sizes; add to torchtitan/models/{}/__init__.py: {}",
                      model_.name, model_.registration));
    converters_ = {};
    if (training_.precision == Precision::fp8) converters_ = {"quantize.linear.float8"};
    if (training_.precision == Precision::mxfp8) converters_ = {"quantize.linear.mx"};
    if (!converters_.empty() && t_.experts > 0)
      converters_.emplace_back(training_.precision == Precision::fp8 ? "quantize.grouped_mm.float8"
                                                                     : "quantize.grouped_mm.mx");
    if (!converters_.empty())
      lines.push_back(fmt::format("converters = [\"{}\"]", fmt::join(converters_, "\", \"")));
    return table("model", lines);
  }

  std::string optimizer() {
    if (training_.optimizer != Optimizer::adam)
      cannot(fmt::format("torchtitan has only Adam and AdamW, which keep more state than \"{}\".",
                         kOptimizerNames[static_cast<std::size_t>(training_.optimizer)]));
    return table("optimizer", {text_entry("name", "AdamW")});
  }

  std::string training() {
    const bool pipeline = strategy_.pipeline > 1;
    const bool wide = stored_precision(training_.precision) == Precision::fp32;
    // A pipeline cuts the local batch into micro-batches; without one, gradients are accumulated.
    const double local = training_.micro_batch * (pipeline ? s_.microbatches : 1);
    Lines lines = {
        fmt::format("local_batch_size = {:.0f}", local),
        fmt::format("global_batch_size = {:.0f}", training_.global_batch),
        fmt::format("{} = {:.0f}", torchtitan_entry("training.sequence_length"), sequence_tokens(s_)),
        text_entry("mixed_precision_param", wide ? "float32" : "bfloat16"),
        text_entry("mixed_precision_reduce", "float32")};
    if (training_.gradient_precision != Precision::fp32)
      cannot(fmt::format("torchtitan reduces gradients in fp32 (gradient_precision = \"{}\").",
                         name_of(training_.gradient_precision)));
    if (training_.precision == Precision::tf32)
      cannot("TF32 is PyTorch's setting: the environment variable TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1.");
    if (strategy_.compression.kind != Compression::none)
      cannot(fmt::format("torchtitan does not compress gradients (compression = \"{}\").",
                         kCompressionNames[static_cast<std::size_t>(strategy_.compression.kind)]));
    const OffloadChoice& offload = strategy_.offload;
    if (offload.optimizer != OffloadTo::none || offload.parameters != OffloadTo::none) {
      lines.push_back("enable_cpu_offload = true");
      if (offload.uses_nvme()) cannot("torchtitan keeps state off the device in host memory, not on NVMe.");
      if (offload.parameters == OffloadTo::none)
        cannot("torchtitan keeps weights in host memory together with optimizer state.");
    }
    return table("training", lines);
  }

  std::string parallelism() {
    const DataDegrees data = *data_degrees(s_);
    Lines lines = {entry("data_parallel_replicate_degree", data.replicate),
                   entry("data_parallel_shard_degree", data.shard),
                   entry("tensor_parallel_degree", strategy_.tensor),
                   entry("pipeline_parallel_degree", strategy_.pipeline),
                   entry("context_parallel_degree", strategy_.context)};
    shards(lines);
    tensor(lines);
    context(lines);
    if (strategy_.pipeline > 1) pipeline(lines);
    if (t_.experts > 0) experts(lines);
    if (!placed_as(strategy_, {"tensor", "context", "data", "pipeline"}))
      cannot(
          fmt::format("torchtitan orders ranks by tensor, context, data and pipeline, the innermost first; "
                      "placement = [\"{}\"] is left out.",
                      fmt::join(strategy_.placement, "\", \"")));
    return table("parallelism", lines);
  }

  void shards(Lines& lines) {
    const bool shares = shards_ && shards_->shards > 1;
    if (!shares) {
      if (strategy_.context > 1) cannot("torchtitan always shards weights over context ranks.");
      if (strategy_.data > 1 && strategy_.context == 1 && strategy_.bucket_bytes != kBucketBytes)
        cannot("torchtitan's buckets of gradients hold 100 MiB (bucket_mb = 100).");
      return;
    }
    const bool keeps = shards_->stage < 3 || !shards_->reshard;
    lines.push_back(text_entry("fsdp_reshard_after_forward", keeps ? "never" : "always"));
    if (shards_->stage < 3)
      cannot(
          fmt::format("torchtitan has no ZeRO-{}: weights are sharded too, and kept from the forward to the "
                      "backward pass (fsdp_reshard_after_forward = \"never\").",
                      shards_->stage));
    if (!strategy_.overlap || shards_->prefetch == 0)
      cannot("FSDP always gathers weights and reduces gradients during the passes.");
  }

  void tensor(Lines& lines) {
    if (strategy_.tensor == 1) return;
    if (!strategy_.sequence_parallel)
      cannot("torchtitan's tensor parallelism always has sequence parallelism (sequence_parallel = true).");
    if (strategy_.tensor_overlap == TensorOverlap::chunks)
      lines.push_back("enable_async_tensor_parallel = true");
    if (strategy_.tensor_overlap == TensorOverlap::weight_gradients)
      cannot(
          "torchtitan does not compute gradients of weights during tensor communication (tensor_overlap).");
  }

  void context(Lines& lines) {
    if (strategy_.context == 1) return;
    const bool ring = strategy_.context_kind == ContextKind::ring;
    lines.push_back(text_entry("context_parallel_rotate_method",
                               word_of_value(kTorchtitanContextKinds, ring ? "ring" : "all-gather")));
    if (strategy_.context_kind == ContextKind::all_to_all)
      cannot(
          "torchtitan exchanges keys and values, not heads (context_kind = \"all-to-all\"); they are "
          "gathered.");
    lines.push_back(text_entry("context_parallel_load_balancer", "headtail"));
    if (!strategy_.zigzag)
      cannot("A TOML file cannot turn torchtitan's balance of context ranks off (zigzag = false).");
  }

  void pipeline(Lines& lines) {
    const OrderEntry& order = order_of(strategy_.schedule);
    std::string_view name = word_of_value(
        kTorchtitanSchedules, kPipelineScheduleNames[static_cast<std::size_t>(strategy_.schedule)]);
    const bool several = strategy_.virtual_stages > 1;
    if (strategy_.schedule == PipelineSchedule::breadth_first && !several) name = "GPipe";  // the same order
    if (strategy_.schedule == PipelineSchedule::interleaved && !several) name = "1F1B";
    if (name.empty()) {
      name = several ? order.placement == PartPlacement::vee ? "DualPipeV" : "Interleaved1F1B" : "1F1B";
      cannot(fmt::format("torchtitan has no {} schedule; what is written runs {}.", order.title, name));
    }
    if (order.mirrored)
      cannot(fmt::format(
          "Stages that hold the same parts of the model count as one: pipeline = {} and data = {} are "
          "written.",
          strategy_.pipeline, strategy_.data));
    lines.push_back(text_entry("pipeline_parallel_schedule", name));
    lines.push_back(fmt::format("pipeline_parallel_microbatch_size = {:.0f}", training_.micro_batch));
    lines.push_back("module_fqns_per_model_part = [");
    for (const ModelPart& part : model_parts(s_)) {
      Lines modules;
      if (part.embedding) modules.emplace_back("\"tok_embeddings\"");
      for (int i = 0; i < part.layers; ++i)
        modules.push_back(fmt::format("\"layers.{}\"", part.first_layer + i));
      if (part.head) modules.insert(modules.end(), {"\"norm\"", "\"output\""});
      lines.push_back(fmt::format("  [{}],", fmt::join(modules, ", ")));
    }
    lines.emplace_back("]");
    if (strategy_.schedule == PipelineSchedule::dualpipe_v && strategy_.expert > 1) {
      const bool overlaps = strategy_.overlap_passes && training_.recompute == Recompute::none;
      lines.push_back(entry(torchtitan_entry("strategy.overlap_passes"), overlaps));
    } else if (strategy_.overlap_passes) {
      cannot(
          "torchtitan overlaps forward and backward passes (overlap_passes) only with DualPipeV and expert "
          "parallelism.");
    }
    if (strategy_.blocking_p2p)
      cannot("torchtitan's pipelines send while they compute (blocking_p2p = false).");
    if (training_.activation_precision != stored_precision(training_.precision))
      cannot(fmt::format("torchtitan sends activations between stages as they are computed, not in {}.",
                         name_of(training_.activation_precision)));
  }

  void experts(Lines& lines) {
    lines.push_back(entry(torchtitan_entry("strategy.expert"), strategy_.expert));
    lines.push_back(entry(torchtitan_entry("strategy.expert_tensor"), expert_tensor_degree(strategy_)));
    const bool by_ranks = strategy_.expert_dispatch != ExpertDispatch::experts;
    const bool deepep = by_ranks && model_.family == TorchtitanFamily::deepseek_v3 && strategy_.expert > 1 &&
                        expert_tensor_degree(strategy_) == 1;
    lines.push_back(text_entry("expert_parallel_comm_backend", deepep ? "deepep" : "standard"));
    if (by_ranks && !deepep)
      cannot(
          "torchtitan sends rows once for each rank (expert_dispatch) only by DeepEP, for DeepSeek-V3's form "
          "without tensor parallel experts.");
    if (strategy_.capacity_factor > 0)
      cannot("torchtitan drops no tokens and has no capacity of experts (capacity_factor).");
  }

  std::string recomputation() {
    Lines lines;
    switch (training_.recompute) {
      case Recompute::none:
      case Recompute::selective:  // of attention, which is fused here and stores no scores
        lines = {text_entry("mode", "none")};
        break;
      case Recompute::operators:
        lines = {text_entry("mode", "selective"), text_entry("selective_ac_option", "op")};
        break;
      case Recompute::full:
        lines = {text_entry("mode", "full")};
        break;
    }
    if (training_.recompute_layers > 0)
      cannot("torchtitan recomputes all layers of a stage in the same way (recompute_layers).");
    return table("activation_checkpoint", lines);
  }

  // The scenario's element-wise kernels are fused unless its framework says how many bytes they move.
  std::string compilation() {
    const Framework& framework = s_.framework;
    compiles_ = framework.norm_bytes.value == 0 && framework.rotary_bytes.value == 0 &&
                framework.gate_bytes.value == 0;
    if (compiles_ && training_.precision == Precision::mxfp8 && strategy_.tensor > 1) {
      cannot("torchtitan's mxfp8 with tensor parallelism runs without torch.compile.");
      compiles_ = false;
    }
    if (!compiles_ && strategy_.tensor > 1 && strategy_.tensor_overlap == TensorOverlap::chunks)
      cannot("torchtitan's asynchronous tensor parallelism has no effect without torch.compile.");
    return table("compile", {entry("enable", compiles_)});
  }

  std::string quantization() {
    std::string text;
    const std::string filter = s_.framework.wide_logits ? "[\"output\"]" : "[]";
    if (training_.precision == Precision::fp8) {
      // One scale per tensor, as in models/precision.hpp: that is what torchtitan does without a recipe, and
      // a recipe excludes gathers in 8 bits (components/quantization/float8.py).
      Lines lines = {"filter_fqns = " + filter};
      if (s_.framework.narrow_gathers)
        lines.insert(lines.begin(), {entry("enable_fsdp_float8_all_gather", true),
                                     entry("precompute_float8_dynamic_scale_for_fsdp", true)});
      else
        lines.insert(lines.begin(), text_entry("recipe_name", "tensorwise"));
      text += table("quantize.linear.float8", lines);
      if (t_.experts > 0) text += table("quantize.grouped_mm.float8", {"fqns = [\"experts\"]"});
    }
    if (training_.precision == Precision::mxfp8) {
      text +=
          table("quantize.linear.mx", {text_entry("recipe_name", "mxfp8_cublas"), "filter_fqns = " + filter});
      if (t_.experts > 0) text += table("quantize.grouped_mm.mx", {"fqns = [\"experts\"]"});
    }
    return text;
  }

  const Scenario& s_;
  const StrategyChoice& strategy_;
  const Training& training_;
  const Transformer& t_;
  const TorchtitanModel model_;
  const std::optional<SharedState> shards_;
  bool compiles_ = true;
  Lines converters_;
  std::vector<std::string> cannot_;
};

// Returns the degrees that torchtitan's checks refuse (parallel_dims.py, parallelize.py).
std::vector<std::string> refused_degrees(const Scenario& scenario, const TorchtitanModel& model) {
  const StrategyChoice& strategy = scenario.strategy;
  const bool mixture = std::get<Transformer>(scenario.model.shape).experts > 0;
  std::vector<std::string> reasons;
  const auto refuse = [&](bool refused, std::string reason) {
    if (refused) reasons.push_back(std::move(reason));
  };
  const auto data = data_degrees(scenario);
  refuse(!data,
         fmt::format("torchtitan shards weights over all context ranks, and shards end among {} of them.",
                     strategy.context));
  refuse(data && data->shard == 1 && data->replicate > 1 && strategy.context == 1 &&
             strategy.tensor * strategy.pipeline > 1,
         "torchtitan keeps full weights on data ranks (DDP) only without tensor parallelism and pipelines; "
         "zero_stage or fsdp shards them.");
  refuse(strategy.pipeline > 1 && !model.pipelines(),
         fmt::format("torchtitan has no pipeline for {}.", model.name));
  refuse(strategy.context > 1 && !model.shares_sequences(),
         fmt::format("torchtitan has no context parallelism for {}, whose attention is FlexAttention.",
                     model.name));
  const int divisor = strategy.tensor * (strategy.context > 1 ? 2 * strategy.context : 1);
  refuse(std::fmod(sequence_tokens(scenario), divisor) != 0,
         fmt::format("torchtitan cuts sequences into {} pieces, and {} tokens are not a multiple of it.",
                     divisor, sequence_tokens(scenario)));
  const int expert_tensor = expert_tensor_degree(strategy);
  refuse(mixture && expert_tensor != 1 && expert_tensor != strategy.tensor,
         fmt::format("torchtitan splits experts by all tensor ranks or by none, not by {} of {}.",
                     expert_tensor, strategy.tensor));
  const int inside = expert_tensor * strategy.expert;
  refuse(mixture && data && strategy.expert > 1 &&
             (data->shard * strategy.context * strategy.tensor) % inside != 0,
         fmt::format(
             "torchtitan spreads experts over ranks that shard weights, and {} ranks cannot hold {} groups "
             "of experts.",
             data ? data->shard * strategy.context * strategy.tensor : 0, inside));
  return reasons;
}

std::vector<std::string> refused_precision(const Scenario& scenario) {
  const Precision precision = scenario.training.precision;
  const int capability = scenario.cluster->node().device.compute_capability;
  if (precision == Precision::fp16) return {"torchtitan trains in bf16 or fp32, not in fp16."};
  if (precision == Precision::nvfp4) return {"torchtitan has no nvfp4."};
  if (precision == Precision::mxfp8 && capability < kBlackwell)
    return {"torchtitan's mxfp8 needs a Blackwell GPU."};
  return {};
}

}  // namespace

LaunchFile torchtitan_launch(const Scenario& scenario) {
  std::vector<std::string> reasons = common_refusals(scenario, kTorchtitan);
  std::string reason;
  const std::optional<TorchtitanModel> model = torchtitan_model(scenario.model, reason);
  if (!model) reasons.push_back(std::move(reason));
  // These settings exist only with this strategy and this model.
  if (reasons.empty()) reasons = refused_degrees(scenario, *model);
  for (std::string& one : refused_precision(scenario)) reasons.push_back(std::move(one));
  if (!reasons.empty()) return {launch_name(scenario, kTorchtitan, "toml"), "", std::move(reasons), false};
  return TorchtitanWriter(scenario, *model).write();
}

}  // namespace rehearse
