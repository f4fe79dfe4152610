// Data parallelism: gradients are summed over the data axis, then every rank updates its own copy of the
// weights. They are sent in buckets, as PyTorch's DistributedDataParallel forms them or as Horovod's
// background loop fuses them, either uncompressed or compressed.
#include <fmt/format.h>

#include <optional>

#include "models/text/document.hpp"
#include "simulator/strategies/gradients/bucket_sums.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/gradients/shards.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

// Returns whether the named strategy preset gave the key, rather than the scenario.
bool from_preset(Section& strategy, std::string_view key) {
  const std::string preset = strategy.text("preset", "");
  return !preset.empty() && strategy.has(key) &&
         strategy.place(key).file == preset_path("simulator/strategies", preset);
}

class AllReduce : public GradientStrategy {
public:
  AllReduce(std::optional<FusionBuffer> fusion, CompressionChoice compression)
      : fusion_(fusion), compression_(compression) {}

  std::string headline(const Scenario& scenario) const override {
    if (compression_.kind != Compression::none)
      return fmt::format("{} compression", kCompressionNames[static_cast<std::size_t>(compression_.kind)]);
    return fmt::format("{} all-reduce{}",
                       kAlgorithmNames[static_cast<std::size_t>(scenario.strategy.all_reduce)],
                       fusion_ ? ", fused" : "");
  }

  ContextGradients context_gradients() const override { return ContextGradients::with_data; }

  void fit(Section& strategy, const Scenario& scenario) const override {
    const Training& training = scenario.training;
    if (places_experts(scenario) && (fusion_ || compression_.kind != Compression::none))
      strategy.refuse(fusion_ ? strategy.has("fusion_mb") ? "fusion_mb" : "cycle_ms" : "compression",
                      "given with experts that are placed on other ranks (expert, expert_tensor)",
                      "no such key, or expert = 1 and no expert_tensor");
    // If the bucket unit comes from the preset, buckets hold complete layers instead (stage_program.cpp).
    if (places_experts(scenario) && scenario.strategy.bucket_unit == BucketUnit::tensor &&
        !from_preset(strategy, "bucket_unit"))
      strategy.refuse("bucket_unit",
                      "\"tensor\" with experts that are placed on other ranks (expert, expert_tensor)",
                      "\"layer\", or expert = 1 and no expert_tensor");
    const Fabric::Kind kind = scenario.cluster->fabric().kind;
    if (scenario.strategy.all_reduce == Algorithm::torus && kind != Fabric::Kind::torus &&
        kind != Fabric::Kind::ring)
      strategy.refuse("all_reduce", "\"torus\", on a cluster whose fabric is not a torus",
                      "another algorithm, or a fabric of kind \"torus\" or \"ring\"");
    if (compression_.kind == Compression::fp16 && element_bytes(training.gradient_precision) < 4)
      strategy.refuse(
          "compression",
          fmt::format("\"fp16\" for gradients in {}",
                      kPrecisionNames[static_cast<std::size_t>(training.gradient_precision)]),
          "gradients that are wider (training.gradient_precision = \"fp32\"), or another compression");
    if (compression_.kind == Compression::power_sgd && is_profiled(scenario.model))
      strategy.refuse("compression", "\"powersgd\" with a profiled model",
                      "a model that gives the shapes of its matrices, or another compression");
  }

  std::shared_ptr<const GradientStrategy> sharded(int stage) const override {
    return fusion_ || compression_.kind != Compression::none ? nullptr : zero_stage(stage);
  }

  std::string learns_otherwise(const Scenario&) const override {
    return compression_.kind != Compression::none ? "compressed gradients lose a part" : "";
  }

  void write(StepPlan& plan) const override {
    write_workers(plan);
    note_tied_embedding(plan);
    if (gradient_ranks(plan) == 1) return;
    if (compression_.kind != Compression::none)
      plan.notes.emplace_back("Compression kernels are assumed to run at the speed of element-wise ones.");
    if (fusion_) plan.notes.emplace_back("A cycle of Horovod's loop begins with the backward pass.");
  }

protected:
  std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const override {
    return bucket_sums(plan, stage, fusion_, compression_);
  }

private:
  std::optional<FusionBuffer> fusion_;
  CompressionChoice compression_;
};

// Parses Horovod's keys. If one of them is present, Horovod's rule forms the buckets.
std::optional<FusionBuffer> read_fusion(Section& strategy, const StrategyChoice& choice) {
  FusionBuffer buffer;
  buffer.bytes = strategy.number("fusion_mb", {0, 1e6}, buffer.bytes / 1048576) * 1048576;
  buffer.cycle_s = strategy.number("cycle_ms", {0, 1e6}, buffer.cycle_s * 1e3) / 1e3;
  std::optional<FusionBuffer> fusion;
  for (const char* key : {"fusion_mb", "cycle_ms"}) {
    if (!strategy.has(key)) continue;
    if (choice.gradients != "all-reduce" && strategy.number(key, kNotNegative) == 0) continue;
    const auto refuse = [&](const std::string& beside, const char* allowed) {
      const double found = strategy.number(key, kNotNegative);
      strategy.refuse(key, fmt::format("{} {}", found, beside), allowed);
    };
    if (choice.gradients != "all-reduce")
      strategy.refuse_inapplicable(
          key,
          fmt::format("{} with gradients = \"{}\"", strategy.number(key, kNotNegative), choice.gradients),
          "gradients = \"all-reduce\", or no such key");
    if (strategy.has("bucket_mb")) refuse("with bucket_mb", "one of the two: Horovod fuses by its own rule");
    if (!choice.overlap) refuse("with overlap = false", "overlap = true, or no such key");
    fusion = buffer;
  }
  return fusion;
}

CompressionChoice read_compression(Section& strategy, const StrategyChoice& choice) {
  CompressionChoice compression;
  compression.kind = static_cast<Compression>(strategy.choice("compression", kCompressionNames, 0));
  compression.density = strategy.number("top_k_density", kFraction, compression.density);
  compression.rank = static_cast<double>(strategy.integer("powersgd_rank", 1, 1024, 4));
  if (compression.kind == Compression::none) return compression;
  const std::string found =
      fmt::format("\"{}\"", kCompressionNames[static_cast<std::size_t>(compression.kind)]);
  if (choice.gradients != "all-reduce")
    strategy.refuse_inapplicable("compression",
                                 fmt::format("{} with gradients = \"{}\"", found, choice.gradients),
                                 "\"none\", or gradients = \"all-reduce\"");
  return compression;
}

void forget_preset_buckets(Section& strategy, StrategyChoice& choice) {
  if (from_preset(strategy, "bucket_unit")) choice.bucket_unit = BucketUnit::layer;
  if (from_preset(strategy, "bucket_copies")) choice.bucket_copies = BucketCopies::none;
}

// Parses what buckets contain and how gradients are copied into them. A preset's values are ignored where
// they have no meaning; the scenario's own are refused there.
void read_bucket_form(Section& strategy, StrategyChoice& choice, bool fused) {
  choice.bucket_unit = static_cast<BucketUnit>(strategy.choice("bucket_unit", kBucketUnitNames, 0));
  choice.bucket_copies = static_cast<BucketCopies>(strategy.choice("bucket_copies", kBucketCopiesNames, 0));
  if (choice.gradients != "all-reduce" || fused) forget_preset_buckets(strategy, choice);
  const auto refuse = [&](const char* key, std::string_view value, const char* standard) {
    if (value == standard) return;
    if (choice.gradients != "all-reduce")
      strategy.refuse_inapplicable(key,
                                   fmt::format("\"{}\" with gradients = \"{}\"", value, choice.gradients),
                                   fmt::format("\"{}\", or gradients = \"all-reduce\"", standard));
    if (fused)
      strategy.refuse(key, fmt::format("\"{}\" with fusion_mb or cycle_ms", value),
                      fmt::format("\"{}\": Horovod fuses by its own rule", standard));
  };
  refuse("bucket_unit", kBucketUnitNames[static_cast<std::size_t>(choice.bucket_unit)], "layer");
  refuse("bucket_copies", kBucketCopiesNames[static_cast<std::size_t>(choice.bucket_copies)], "none");
}

void refuse_beside_shards(Section& strategy, bool fused, StrategyChoice& choice) {
  forget_preset_buckets(strategy, choice);
  const char* const allowed = "zero_stage = 0 and fsdp = \"none\", or no such key";
  for (const char* key : {"fusion_mb", "cycle_ms"})
    if (fused && strategy.has(key))
      strategy.refuse_inapplicable(key, "given with sharded data parallelism (zero_stage, fsdp)", allowed);
  if (choice.bucket_unit != BucketUnit::layer)
    strategy.refuse_inapplicable("bucket_unit", "\"tensor\" with sharded data parallelism (zero_stage, fsdp)",
                                 allowed);
  if (choice.bucket_copies != BucketCopies::none)
    strategy.refuse_inapplicable("bucket_copies", "given with sharded data parallelism (zero_stage, fsdp)",
                                 allowed);
  if (choice.compression.kind != Compression::none)
    strategy.refuse_inapplicable(
        "compression",
        fmt::format("\"{}\" with sharded data parallelism (zero_stage, fsdp)",
                    kCompressionNames[static_cast<std::size_t>(choice.compression.kind)]),
        allowed);
}

}  // namespace

extern const GradientStrategyEntry kAllReduceStrategy{
    "all-reduce", "data parallel: gradients are summed by all-reduce",
    "Every GPU trains its share of the batch with the entire model. Gradients are sent in buckets while the\n"
    "backward pass still computes the next ones (unless overlap = false); with fusion_mb or cycle_ms, as\n"
    "Horovod's background loop fuses them. They can be compressed: to fp16, to the largest ones, to their\n"
    "signs, or to factors of low rank. With zero_stage or fsdp the GPUs shard optimizer state, gradients "
    "and\n"
    "weights: gradients are reduce-scattered, weights are gathered.",
    "data = 8                    # ranks that share the batch; may be left out\n"
    "gradients = \"all-reduce\"\n"
    "all_reduce = \"ring\"         # tree, halving-doubling, recursive-doubling, hierarchical, torus,\n"
    "                            # or auto: the fastest of them\n"
    "bucket_mb = 25              # gradients sent together; left out: 25, but the first bucket 1\n"
    "# first_bucket_mb = 1       # limit of the first bucket, if it is less\n"
    "bucket_unit = \"layer\"       # tensor: buckets may end inside layers, as PyTorch's do\n"
    "bucket_copies = \"none\"      # in: gradients are copied into buckets; in-out: and back\n"
    "# fusion_mb = 128           # instead of bucket_mb: Horovod's fusion buffer,\n"
    "# cycle_ms = 1              # and how often its loop wakes\n"
    "compression = \"none\"        # fp16, top-k, one-bit, powersgd\n"
    "top_k_density = 0.01        # share of the gradients that top-k sends\n"
    "powersgd_rank = 4\n"
    "zero_stage = 0              # 1 shares out the optimizer state, 2 gradients too, 3 weights too\n"
    "fsdp = \"none\"               # full (as zero_stage = 3), hybrid: shards in groups of shard_degree\n"
    "# shard_degree = 8          # ranks of a group; left out: those of a node\n"
    "# prefetch = 1              # layers whose weights are gathered ahead of their pass\n"
    "# reshard_after_forward = true  # with zero_stage = 3: drop weights until the backward pass\n"
    "offload = \"none\"            # cpu, nvme: with zero_stage or fsdp, optimizer state is kept off the "
    "device\n"
    "offload_parameters = \"none\" # cpu, nvme: shards of the weights, too (zero_stage = 3)\n"
    "overlap = true\n",
    [](Section& strategy, StrategyChoice& choice) -> std::shared_ptr<const GradientStrategy> {
      const std::optional<FusionBuffer> fusion = read_fusion(strategy, choice);
      choice.compression = read_compression(strategy, choice);
      read_bucket_form(strategy, choice, fusion.has_value());
      if (auto shards = read_shards(strategy, choice)) {
        refuse_beside_shards(strategy, fusion.has_value(), choice);
        return shards;
      }
      return std::make_shared<AllReduce>(fusion, choice.compression);
    }};

}  // namespace rehearse
