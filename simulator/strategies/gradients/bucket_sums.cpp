#include "simulator/strategies/gradients/bucket_sums.hpp"

#include <fmt/format.h>

#include <array>

#include "simulator/strategies/gradients/compression.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {

int write_bucket_sum(const StepPlan& plan, StageProgram& stage, std::size_t bucket, int gradients,
                     const std::string& stream, const std::vector<Dependency>& after) {
  const double element = element_bytes(plan.scenario.training.gradient_precision);
  int last = -1;
  for (const BucketPart& part : parts_of(plan, stage.buckets[bucket])) {
    if (part.ranks == 1) continue;
    Op op = collective_op(plan, stage.program, fmt::format("all-reduce bucket {}{}", bucket, part.name),
                          stream, CollectiveKind::all_reduce, part.parameters * element, &part.axes);
    op.first_layer = stage.buckets[bucket].first_layer;
    op.last_layer = stage.buckets[bucket].last_layer;
    op.after = after;
    op.reads = op.writes = {gradients};
    if (stage.buckets[bucket].expert_parameters > 0) op.action.kind = Action::Kind::sum_part;
    op.action.part = part.number;
    last = add_op(stage.program, std::move(op));
  }
  return last;
}

namespace {

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
    if (on_) stage_.backward_of_bucket[b] = write(b, "into", {});
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

// DDP does not synchronize the micro-batches before the last one (no_sync); the backward pass of the last one
// triggers the buckets.
class BucketSums : public StageHooks {
public:
  // `fused`: the buckets of all model chunks, in the order of the stage's buckets; empty: they are not fused.
  BucketSums(StepPlan& plan, StageProgram stage, FusedBuckets fused, const CompressionChoice& compression)
      : StageHooks(plan, std::move(stage)),
        ranks_(gradient_ranks(plan)),
        compressed_(compression.kind != Compression::none && ranks_ > 1),
        fused_(std::move(fused)),
        copying_(plan, stage_, ranks_),
        streams_(plan.scenario.engine),
        begin_backward_(stage_.chunks.size(), -1),
        wakings_(stage_.buckets.size(), -1),
        summed_(stage_.buckets.size(), -1) {
    for (const Bucket& bucket : stage_.buckets)
      syncs_.push_back(compressed_sync(compression, plan, bucket, ranks_));
  }

  void before_backward(const PassItem& item, int received) override {
    if (!fuses() || item.microbatch < plan_.scenario.microbatches - 1) return;
    Op begin = marker(plan_, stage_, "begin backward");
    if (received >= 0) begin.after = {{received}};
    begin_backward_[static_cast<std::size_t>(item.chunk)] = add_op(stage_.program, std::move(begin));
  }

  void on_bucket_complete(const PassItem&, std::size_t b) override {
    copying_.copy_in(b);
    if (compressed_) write_compression(plan_, stage_, syncs_[b], b);
  }

  void behind_passes() override {
    for (std::size_t c = stage_.chunks.size(); fuses() && c > 0; --c)
      write_cycles(stage_, fused_, stage_.chunks[c - 1], begin_backward_[c - 1], wakings_);
  }

  void send_bucket(std::size_t b, int complete) override {
    if (ranks_ == 1) return;
    std::vector<Dependency> after = {{compressed_ ? stage_.backward_of_bucket[b] : complete}};
    if (wakings_[b] >= 0) after.push_back({wakings_[b]});
    const double sent_bytes = compressed_ ? syncs_[b].buffer_bytes : gradient_bytes(plan_, stage_.buckets[b]);
    if (fuses()) write_copy(plan_, stage_, fused_, b, "into", sent_bytes, after);
    std::string stream = "gradients";
    if (compressed_) {
      write_compressed_sync(plan_, stage_, syncs_[b], b, after);
    } else {
      if (!fuses()) stream = streams_.next(sent_bytes);
      write_bucket_sum(plan_, stage_, b, stage_.gradients[b], stream, after);
    }
    if (fuses() && !compressed_) write_copy(plan_, stage_, fused_, b, "out of", sent_bytes, {});
    summed_[b] = last_op_of_stream(stage_.program, find_stream(stage_.program, stream));
  }

  void end_of_step() override {
    for (std::size_t b = 0; b < stage_.buckets.size(); ++b)
      if (summed_[b] >= 0) copying_.copy_out(b, summed_[b]);
    StageHooks::end_of_step();
  }

private:
  bool fuses() const { return !fused_.buckets.empty(); }

  const int ranks_;
  const bool compressed_;
  const FusedBuckets fused_;
  BucketCopying copying_;
  GradientStreams streams_;
  std::vector<CompressedSync> syncs_;
  std::vector<int> begin_backward_;  // by model chunk
  std::vector<int> wakings_;         // by bucket: the wake-up of Horovod's loop that it waits for; -1: none
  std::vector<int> summed_;          // by bucket: the last op of its sum
};

}  // namespace

std::unique_ptr<StageHooks> bucket_sums(StepPlan& plan, int number, const std::optional<FusionBuffer>& fusion,
                                        const CompressionChoice& compression) {
  FusedBuckets fused;
  const bool sends = gradient_ranks(plan) > 1;
  StageProgram stage = fusion && sends
                           ? begin_stage(plan, number, {true, false},
                                         [&](const LayerRange& layers) {
                                           return append(fused, fused_buckets(plan, layers, *fusion));
                                         })
                           : begin_stage(plan, number, {sends, false});
  return std::make_unique<BucketSums>(plan, std::move(stage), std::move(fused), compression);
}

}  // namespace rehearse
