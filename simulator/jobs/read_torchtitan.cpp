// Reads torchtitan's job configuration: sources and defaults in torchtitan_names.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "simulator/jobs/job_readers.hpp"
#include "simulator/jobs/torchtitan_flavors.hpp"

namespace rehearse {
namespace {

class TorchtitanReader {
public:
  TorchtitanReader(JobFile& job, const JobSettings& settings)
      : job_(job), draft_(job, settings, torchtitan_names(), "") {}

  void read() {
    draft_.translate();
    model();
    degrees();
    pipeline();
    batch();
    precision();
    memory();
    const bool compiles = draft_.on("compile.enable") || draft_.on("training.compile");
    draft_.set_text("training.framework", compiles ? "torchtitan-2024" : "torchtitan-2024-eager",
                    draft_.has("compile.enable") ? "compile.enable" : "training.compile");
    draft_.note(fmt::format("The framework preset is {}.",
                            compiles ? "torchtitan-2024" : "torchtitan-2024-eager, without torch.compile"));
    draft_.report();
  }

private:
  // Returns the first of these names that the file has; releases moved keys between tables.
  std::string_view first(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      if (draft_.has(name)) return name;
    return *names.begin();
  }
  double degree(std::initializer_list<std::string_view> names, double fallback) const {
    const double found = draft_.number(first(names), fallback, -1);
    return found == 0 ? 1 : found;
  }

  void model() {
    const std::string name = draft_.text("model.name"), flavor = draft_.text("model.flavor");
    const TorchtitanPreset preset = torchtitan_preset(name, flavor);
    layers_ = preset.layers;
    if (!preset.name.empty()) return draft_.set_text("model.preset", preset.name, "model.flavor");
    if (!name.empty() || !flavor.empty())
      draft_.ask("model", fmt::format("the model {} {} of torchtitan has no preset here", name, flavor),
                 "--set model.preset=llama3-8b or --set model.huggingface=config.json");
  }

  void degrees() {
    tensor_ = degree({"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"}, 1);
    stages_ = degree({"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"}, 1);
    context_ = degree({"parallelism.context_parallel_degree", "experimental.context_parallel_degree"}, 1);
    for (const auto& [key, value, name] :
         {std::tuple("tensor", tensor_,
                     first({"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"})),
          {"pipeline", stages_,
           first({"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"})},
          {"context", context_,
           first({"parallelism.context_parallel_degree", "experimental.context_parallel_degree"})}}) {
      if (value < 1) draft_.refuse(*draft_.find(name), "a number from 1 on");
      draft_.set(fmt::format("strategy.{}", key), value, name);
    }
    if (tensor_ > 1) draft_.set("strategy.sequence_parallel", true);
    if (tensor_ > 1 && (draft_.on("parallelism.enable_async_tensor_parallel") ||
                        draft_.on("experimental.enable_async_tensor_parallel")))
      draft_.set_text(
          "strategy.tensor_overlap", "chunks",
          first({"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"}));
    if (context_ > 1) {
      const std::string_view name = first(
          {"parallelism.context_parallel_rotate_method", "experimental.context_parallel_rotate_method"});
      const std::string_view kind = value_of_word(kTorchtitanContextKinds, draft_.text(name, "allgather"));
      if (kind.empty()) draft_.refuse(*draft_.find(name), "allgather or alltoall");
      draft_.set_text("strategy.context_kind", kind, name);
    }
    if (draft_.text("parallelism.expert_parallel_comm_backend") == "deepep")
      draft_.set_text("strategy.expert_dispatch", "nodes", "parallelism.expert_parallel_comm_backend");
    // torchtitan splits experts by tensor ranks only where it is told to.
    if (draft_.number("parallelism.expert_parallel_degree", 1) > 1 &&
        !draft_.has("parallelism.expert_tensor_parallel_degree"))
      draft_.set("strategy.expert_tensor", 1.0);
    if (draft_.number("parallelism.expert_parallel_degree", 1) <= 1)
      std::erase_if(job_.keys, [](const JobKey& one) {
        return one.key == "strategy.expert_tensor" || one.key == "strategy.expert";
      });
    shards();
  }

  void shards() {
    const std::string_view shard_name =
        first({"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree",
               "training.data_parallel_degree"});
    const std::string_view replicate_name =
        first({"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"});
    const double shard = degree({shard_name}, -1), replicate = std::max(1.0, degree({replicate_name}, 1));
    const double others = tensor_ * stages_ * context_ * replicate;
    if (shard > 0) job_.devices = shard * others;
    const bool shards = shard < 0 || shard * context_ > 1;
    if (!shards) {
      draft_.set("strategy.zero_stage", 0.0, replicate_name);
      draft_.set("strategy.bucket_mb", 100.0);  // apply_ddp
      return;
    }
    draft_.set_text("strategy.fsdp", replicate > 1 ? "hybrid" : "full",
                    replicate > 1 ? replicate_name : shard_name);
    if (replicate > 1 && shard > 0)
      draft_.set("strategy.shard_degree", shard * context_, shard_name);
    else if (replicate > 1)
      job_.replicas = replicate;
    const std::string reshard = draft_.text("parallelism.fsdp_reshard_after_forward", "default");
    draft_.set("strategy.reshard_after_forward",
               reshard == "always" || (reshard == "default" && stages_ == 1),
               "parallelism.fsdp_reshard_after_forward");
  }

  void pipeline() {
    if (stages_ <= 1) return;
    const std::string_view name =
        first({"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"});
    const std::string wanted = lower(draft_.text(name, "1F1B"));
    std::string_view schedule;
    for (const JobWord& one : kTorchtitanSchedules)
      if (lower(one.word) == wanted) schedule = one.value;
    if (schedule.empty() && wanted == "interleavedzerobubble") {
      schedule = "interleaved";
      draft_.note("InterleavedZeroBubble is counted as Interleaved1F1B.");
    }
    if (schedule.empty()) {
      std::vector<std::string_view> allowed;
      for (const JobWord& one : kTorchtitanSchedules) allowed.push_back(one.word);
      draft_.refuse(*draft_.find(name), fmt::format("{}", fmt::join(allowed, ", ")));
    }
    double chunks = schedule == "1f1b" || schedule == "gpipe" ? 1 : 2;
    std::string_view from = name;
    if (const double each = draft_.number("parallelism.pipeline_parallel_layers_per_stage", 0);
        each > 0 && layers_ > 0 && chunks > 1) {
      chunks = std::max(2.0, std::ceil(layers_ / each / stages_));
      from = "parallelism.pipeline_parallel_layers_per_stage";
    }
    if (draft_.has("parallelism.module_fqns_per_model_part")) {
      from = "parallelism.module_fqns_per_model_part";
      const std::vector<int> parts = modules(draft_.text(from));
      chunks = std::max(1.0, std::floor(static_cast<double>(parts.size()) / stages_));
      draft_.set_toml("strategy.stage_layers", fmt::format("[{}]", fmt::join(parts, ", ")), from);
    }
    draft_.set_text("strategy.schedule", schedule, name);
    if (chunks > 1) draft_.set("strategy.virtual_stages", chunks, from);
  }

  // Counts the layers of each part, the embedding and the head as one each:
  // "tok_embeddings,layers.0;norm,output".
  static std::vector<int> modules(std::string_view text) {
    std::vector<int> parts;
    while (parts.size() < 100'000) {
      const std::size_t end = std::min(text.find(';'), text.size());
      const std::string part = "," + std::string(text.substr(0, end)) + ",";
      int layers = 0;
      for (std::size_t at = 0; (at = part.find(",layers.", at)) != std::string::npos; ++at) ++layers;
      layers += part.find(",tok_embeddings,") != std::string::npos;
      layers += part.find(",output,") != std::string::npos;
      parts.push_back(layers);
      if (end == text.size()) return parts;
      text.remove_prefix(end + 1);
    }
    return parts;
  }

  void batch() {
    const std::string_view name = first({"training.local_batch_size", "training.batch_size"});
    const double local = draft_.number(name, 8, 1);  // the default
    double micro = local;
    std::string_view from = name;
    if (stages_ > 1) {
      const double pieces = draft_.number(first({"parallelism.pipeline_parallel_microbatches",
                                                 "experimental.pipeline_parallel_microbatches"}),
                                          0);
      from = "parallelism.pipeline_parallel_microbatch_size";
      micro = draft_.number(from, pieces > 0 ? std::max(1.0, std::floor(local / pieces)) : 1, 1);
    }
    draft_.set("training.micro_batch", micro, from);
    const double global = draft_.number("training.global_batch_size", -1, -1);
    if (global > 0)
      draft_.set("training.global_batch", global, "training.global_batch_size");
    else
      job_.accumulation = local / micro;
    job_.iterations = draft_.number("training.steps", 0);
    if (!draft_.has("training.seq_len")) draft_.set("training.sequence_length", 2048.0);  // the default
  }

  void precision() {
    const std::string converters = draft_.text("model.converters");
    const bool float8 = converters.find("float8") != std::string::npos ||
                        draft_.on("float8.enable_float8_linear") ||
                        draft_.on("training.enable_float8_linear") || draft_.on("training.fp8_linear");
    const bool mx = converters.find("mx") != std::string::npos;
    const bool wide = draft_.text("training.mixed_precision_param", "bfloat16") == "float32";
    draft_.set_text("training.precision",
                    mx       ? "mxfp8"
                    : float8 ? "fp8"
                    : wide   ? "fp32"
                             : "bf16",
                    mx || float8 ? "model.converters" : "training.mixed_precision_param");
    const bool reduces_wide = draft_.text("training.mixed_precision_reduce", "float32") == "float32";
    draft_.set_text("training.gradient_precision", reduces_wide ? "fp32" : "bf16",
                    "training.mixed_precision_reduce");
    if (!float8) return;
    const std::string_view gathers =
        first({"quantize.linear.float8.enable_fsdp_float8_all_gather", "float8.enable_fsdp_float8_all_gather",
               "training.enable_fsdp_float8_all_gather"});
    draft_.set("framework.narrow_gathers", draft_.on(gathers), gathers);
    const std::string recipe =
        draft_.text(first({"quantize.linear.float8.recipe_name", "float8.recipe_name"}));
    if (recipe.find("rowwise") != std::string::npos)
      draft_.note(
          "The recipe rowwise is counted as one scale a tensor (--set "
          "training.framework=torchtitan-2025-rowwise).");
  }

  void memory() {
    const std::string mode = draft_.text("activation_checkpoint.mode", "selective");
    const std::string option = draft_.text("activation_checkpoint.selective_ac_option", "2");
    const bool every = !option.empty() && std::all_of(option.begin(), option.end(),
                                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    if (mode == "full") {
      draft_.set_text("training.recompute", "full", "activation_checkpoint.mode");
    } else if (mode == "selective" && !every) {
      draft_.set_text("training.recompute", "operators", "activation_checkpoint.selective_ac_option");
    } else if (mode == "selective") {
      const double step = std::max(1.0, draft_.number("activation_checkpoint.selective_ac_option", 2, 1));
      draft_.set_text("training.recompute", "full", "activation_checkpoint.selective_ac_option");
      if (layers_ > 0 && step > 1) {
        const double in_stage = std::max(1.0, std::floor(layers_ / stages_ / step));
        draft_.set("training.recompute_layers", in_stage, "activation_checkpoint.selective_ac_option");
      }
      draft_.note(fmt::format("Every layer of {} is recomputed whole, by selective_ac_option.", step));
    } else if (mode == "memory_budget") {
      draft_.note("activation_checkpoint.mode = \"memory_budget\" is left out: nothing is recomputed.");
    }
    if (draft_.on("training.enable_cpu_offload")) {
      draft_.set_text("strategy.offload", "cpu", "training.enable_cpu_offload");
      draft_.set_text("strategy.offload_parameters", "cpu", "training.enable_cpu_offload");
    }
    const std::string optimizer = draft_.text("optimizer.name", "AdamW");
    if (optimizer.find("Adam") == std::string::npos)
      draft_.note(fmt::format("The optimizer {} is counted as Adam.", optimizer));
  }

  static std::string lower(std::string_view text) {
    std::string copy(text);
    for (char& c : copy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return copy;
  }

  JobFile& job_;
  JobDraft draft_;
  double layers_ = 0, tensor_ = 1, stages_ = 1, context_ = 1;
};

}  // namespace

void read_torchtitan(JobFile& job, const JobSettings& settings) {
  TorchtitanReader(job, settings).read();
}

}  // namespace rehearse
