// Data parallelism: gradients are summed over the data axis, then every rank updates its own copy of the
// weights. They are sent in buckets, as PyTorch's DistributedDataParallel forms them or as Horovod's
// background loop fuses them, either uncompressed or compressed.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "models/text/document.hpp"
#include "simulator/strategies/gradients/compression.hpp"
#include "simulator/strategies/gradients/fusion.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/gradients/shards.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/program_writer.hpp"

namespace rehearse {
namespace {

// Returns whether the named strategy preset gave the key, rather than the scenario.
bool from_preset(Section& strategy, std::string_view key) {
  const std::string preset = strategy.text("preset", "");
  return !preset.empty() && strategy.has(key) &&
         strategy.place(key).file == preset_path("simulator/strategies", preset);
}

// Writes the sum of bucket `b` over the ranks with the same weights.
void write_all_reduce(const StepPlan& plan, StageProgram& stage, std::size_t b, const std::string& stream,
                      const std::vector<Dependency>& after) {
  const double element = element_bytes(plan.scenario.training.gradient_precision);
  for (const BucketPart& part : parts_of(plan, stage.buckets[b])) {
    if (part.ranks == 1) continue;
    Op op = collective_op(plan, stage.program, fmt::format("all-reduce bucket {}{}", b, part.name), stream,
                          CollectiveKind::all_reduce, part.parameters * element, &part.axes);
    op.first_layer = stage.buckets[b].first_layer;
    op.last_layer = stage.buckets[b].last_layer;
    op.after = after;
    op.reads = op.writes = {stage.gradients[b]};
    if (stage.buckets[b].expert_parameters > 0) op.action.kind = Action::Kind::sum_part;
    op.action.part = part.number;
    add_op(stage.program, std::move(op));
  }
}

// Writes DistributedDataParallel's copies (torch/csrc/distributed/c10d/reducer.cpp): when a gradient arrives,
// it is multiplied by 1 / ranks into its bucket's memory (mark_variable_ready_dense). Once the backward pass
// has ended and the bucket's sum is complete, it is copied back (finalize_backward), bucket by bucket. Both
// run on the stream of the backward pass. Each reads and writes all bytes. Gradients that are views of the
// buckets (gradient_as_bucket_view) need no copy back.
class BucketCopying {
public:
  BucketCopying(StepPlan& plan, StageProgram& stage, int ranks) : plan_(plan), stage_(stage) {
    if (ranks == 1 || plan.scenario.strategy.bucket_copies == BucketCopies::none) return;
    const bool separate = plan.scenario.strategy.bucket_copies == BucketCopies::in_out;
    for (std::size_t b = 0; separate && b < stage.buckets.size(); ++b)
      buffers_.push_back(
          stage.buckets[b].parameters > 0
              ? add_buffer(stage.program, fmt::format("bucket {}", b), gradient_bytes(plan, stage.buckets[b]))
              : -1);
    on_ = true;
  }

  void copy_in(std::size_t b) {
    if (on_ && stage_.buckets[b].parameters > 0) stage_.backward_of_bucket[b] = write(b, "into", {});
  }
  // Writes the copy back, which waits for `summed`, the op that completes the bucket's sum.
  void copy_out(std::size_t b, int summed) {
    if (on_ && !buffers_.empty() && buffers_[b] >= 0) write(b, "out of", {{summed}});
  }

private:
  int write(std::size_t b, const char* way, std::vector<Dependency> after) {
    Work work;
    work.name = fmt::format("copy gradients {} bucket {}", way, b);
    work.precision = plan_.scenario.training.gradient_precision;
    work.kernels = {memory_kernel(2 * gradient_bytes(plan_, stage_.buckets[b]))};
    Op copy = compute_op(plan_, stage_.program, work.name, Pass::gradient_sync, work);
    copy.first_layer = stage_.buckets[b].first_layer;
    copy.last_layer = stage_.buckets[b].last_layer;
    copy.after = std::move(after);
    copy.reads = copy.writes = {stage_.gradients[b]};
    if (!buffers_.empty()) {
      copy.reads.push_back(buffers_[b]);
      copy.writes.push_back(buffers_[b]);
    }
    return add_op(stage_.program, std::move(copy));
  }

  StepPlan& plan_;
  StageProgram& stage_;
  std::vector<int> buffers_;  // one per bucket, of its size; empty: gradients are views of the buckets
  bool on_ = false;
};

// ProcessGroupGloo has two threads, and the idle one takes the next collective
// (torch/csrc/distributed/c10d/ProcessGroupGloo.hpp, Options::threads): the one that has carried fewer bytes,
// as both are equally fast. All other collectives run one after the other.
class GradientStreams {
public:
  // Without contention, two concurrent sums would take the time of one, so there they run one after the
  // other.
  explicit GradientStreams(const EngineOptions& engine)
      : two_(engine.protocol.kind == Protocol::gloo && engine.fidelity != Fidelity::analytic) {}
  std::string next(double bytes) {
    const bool second = two_ && carried_[1] < carried_[0];
    carried_[second] += bytes;
    return second ? kSecondGradients : "gradients";
  }

private:
  bool two_;
  std::array<double, 2> carried_ = {0, 0};
};

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

  void write(StepPlan& plan) const override {
    for (int s = 0; s < plan.scenario.strategy.pipeline; ++s) write_stage(plan, s);
    if (plan.tied_parameters > 0)
      plan.notes.emplace_back(
          "The first and the last stage both hold the tied embedding and add up its gradients.");
    if (gradient_ranks(plan) == 1) return;
    if (compression_.kind != Compression::none)
      plan.notes.emplace_back("Compression kernels are assumed to run at the speed of element-wise ones.");
    if (fusion_) plan.notes.emplace_back("A cycle of Horovod's loop begins with the backward pass.");
  }

private:
  // DDP does not synchronize the micro-batches before the last one (no_sync); the backward pass of the last
  // one triggers the buckets.
  void write_stage(StepPlan& plan, int number) const {
    const int ranks = gradient_ranks(plan);
    const bool fused = fusion_ && ranks > 1, compressed = compression_.kind != Compression::none && ranks > 1;
    FusedBuckets fusion;  // of all model chunks, in the order of the stage's buckets
    StageProgram stage = fused ? begin_stage(plan, number, {true, false},
                                             [&](const LayerRange& layers) {
                                               return append(fusion, fused_buckets(plan, layers, *fusion_));
                                             })
                               : begin_stage(plan, number, {ranks > 1, false});
    std::vector<CompressedSync> syncs;
    for (const Bucket& bucket : stage.buckets)
      syncs.push_back(compressed_sync(compression_, plan, bucket, ranks));
    BucketCopying copying(plan, stage, ranks);
    std::vector<int> begin_backward(stage.chunks.size(), -1);
    PassHooks hooks;
    if (fused)
      hooks.before_backward = [&](const PassItem& item, int received) {
        if (item.microbatch < plan.scenario.microbatches - 1) return;
        Op begin = marker(plan, stage, "begin backward");
        if (received >= 0) begin.after = {{received}};
        begin_backward[static_cast<std::size_t>(item.chunk)] = add_op(stage.program, std::move(begin));
      };
    hooks.behind_bucket = [&](const PassItem&, std::size_t b) {
      copying.copy_in(b);
      if (compressed && stage.buckets[b].parameters > 0) write_compression(plan, stage, syncs[b], b);
    };
    write_passes(plan, stage, hooks);

    std::vector<int> wakings(stage.buckets.size(), -1);
    for (std::size_t c = stage.chunks.size(); fused && c > 0; --c)
      write_cycles(stage, fusion, stage.chunks[c - 1], begin_backward[c - 1], wakings);
    const int backward_end = last_op_of_stream(stage.program, stream_named(stage.program, "compute"));
    GradientStreams streams(plan.scenario.engine);
    std::vector<int> summed(stage.buckets.size(), -1);  // by bucket: the last op of its sum
    for (std::size_t b = 0; ranks > 1 && b < stage.buckets.size(); ++b) {
      if (stage.buckets[b].parameters == 0) continue;
      std::vector<Dependency> after = {
          {plan.scenario.strategy.overlap || compressed ? stage.backward_of_bucket[b] : backward_end}};
      if (wakings[b] >= 0) after.push_back({wakings[b]});
      const double sent_bytes = compressed ? syncs[b].buffer_bytes : gradient_bytes(plan, stage.buckets[b]);
      if (fused) write_copy(plan, stage, fusion, b, "into", sent_bytes, after);
      std::string stream = "gradients";
      if (compressed) {
        write_compressed_sync(plan, stage, syncs[b], b, after);
      } else {
        if (!fused) stream = streams.next(sent_bytes);
        write_all_reduce(plan, stage, b, stream, after);
      }
      if (fused && !compressed) write_copy(plan, stage, fusion, b, "out of", sent_bytes, {});
      summed[b] = last_op_of_stream(stage.program, find_stream(stage.program, stream));
    }
    for (std::size_t b = 0; b < stage.buckets.size(); ++b)
      if (summed[b] >= 0) copying.copy_out(b, summed[b]);
    if (stage.parameters() > 0) {
      sync_tied_embedding(plan, stage);
      add_op(stage.program, optimizer_op(plan, stage));
    }
    end_stage(plan, stage);
    plan.schedule.programs.push_back(std::move(stage.program));
  }

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
    "all_reduce = \"ring\"         # tree, halving-doubling, hierarchical, torus, or auto: the fastest of "
    "them\n"
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
