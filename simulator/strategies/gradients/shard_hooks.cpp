#include "simulator/strategies/gradients/shard_hooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "simulator/strategies/gradients/host_copies.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"

namespace rehearse {
namespace {

bool offloads(const StepPlan& plan) {
  return plan.scenario.strategy.offload.optimizer != OffloadTo::none;
}

// Returns one bucket per layer with weights, as FSDP wraps each block of a transformer.
std::vector<Bucket> units(const StepPlan& plan, const LayerRange& layers) {
  std::vector<double> parameters;
  for (int i = layers.first; i <= layers.last; ++i) parameters.push_back(plan.layers[i].parameters);
  return gradient_buckets(parameters, layers.first, 1, 0, 0);
}

// `zero`: the ZeRO stage; 0 if nothing is sharded or offloaded.
StageProgram begin_sharded(StepPlan& plan, int number, int zero, int shards) {
  StageTraffic traffic;
  traffic.sends_gradients = gradient_ranks(plan) > 1 || offloads(plan);
  traffic.receives_weights = shards > 1 && (zero == 1 || zero == 2);
  traffic.every_forward = zero == 3;
  traffic.every_backward = zero >= 2;
  traffic.held = {zero == 3 ? shards : 1, zero >= 2 ? shards : 1, zero >= 1 ? shards : 1};
  if (zero < 3) return begin_stage(plan, number, traffic);
  return begin_stage(plan, number, traffic, [&](const LayerRange& layers) { return units(plan, layers); });
}

class ShardHooks : public StageHooks {
public:
  ShardHooks(StepPlan& plan, int number, int zero, const SharedState& state)
      : StageHooks(plan, begin_sharded(plan, number, zero, state.shards)),
        state_(state),
        zero_(zero),
        overlaps_(plan.scenario.strategy.overlap),
        compute_(stream_named(stage_.program, "compute")),
        in_flight_(stage_.buckets.size(), 0),
        gathered_(stage_.buckets.size()),
        pass_gradients_(stage_.buckets.size(), -1),
        scattered_(stage_.buckets.size(), -1) {
    if (offloads(plan)) host_.emplace(plan, stage_, zero);
  }

  Weights weights_for(const PassItem& item, std::size_t b) override {
    return zero_ == 3 ? gather_for(item, b) : StageHooks::weights_for(item, b);
  }

  Gradients gradients_for(const PassItem& item, std::size_t b) override {
    if (zero_ < 2) return StageHooks::gradients_for(item, b);
    pass_gradients_[b] = add_buffer(stage_.program, bucket_text("gradients of", item, stage_.buckets[b]),
                                    gradient_bytes(plan_, stage_.buckets[b]));
    return {pass_gradients_[b], host_ ? host_->copied_before() : scattered_[b]};
  }

  // Leaves each rank with the sum of its shard. Replicas of a shard are summed once, after the last
  // micro-batch.
  void on_bucket_complete(const PassItem& item, std::size_t b) override {
    const std::string stream = overlaps_ ? "gradients" : "compute";
    const double element = element_bytes(plan_.scenario.training.gradient_precision);
    const int complete = stage_.backward_of_bucket[b];
    int& ready = stage_.backward_of_bucket[b];  // later users of the gradients wait for this op
    const bool to_host = host_ && zero_ >= 2;
    const std::vector<PartShards> parts = shards_of(b);
    const bool scatters =
        std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p.held.shards > 1; });
    const int whole = zero_ >= 2 ? pass_gradients_[b] : stage_.gradients[b];
    const int sum = !to_host ? stage_.gradients[b]
                    : scatters
                        ? add_buffer(stage_.program, bucket_text("sum of gradients", item, stage_.buckets[b]),
                                     host_->shard_bytes(b))
                        : whole;
    const int fetched = to_host ? host_->fetch_sum(item, b, complete) : -1;
    for (const PartShards& its : parts) {
      const double bytes = its.part.parameters * element;
      int last = complete;
      if (its.held.shards > 1) {
        Op scatter = collective_of(bucket_text("reduce-scatter", item, stage_.buckets[b]) + its.part.name,
                                   stream, CollectiveKind::reduce_scatter, b, bytes, its.held.shard);
        scatter.microbatch = item.microbatch;
        scatter.action.kind = Action::Kind::scatter_gradients;
        scatter.action.part = its.part.number;
        scatter.after = {{last}};
        scatter.reads = {whole};
        scatter.writes = {sum};
        ready = last = scattered_[b] = add_op(stage_.program, std::move(scatter));
      }
      if (its.held.replicas.empty() || item.microbatch < plan_.scenario.microbatches - 1) continue;
      Op total = collective_of(bucket_text("all-reduce", item, stage_.buckets[b]) + its.part.name, stream,
                               CollectiveKind::all_reduce, b, bytes / its.held.shards, its.held.replicas);
      if (stage_.buckets[b].expert_parameters > 0) total.action.kind = Action::Kind::sum_part;
      total.action.part = its.part.number;
      total.after = {{last}};
      if (fetched >= 0) total.after.push_back({fetched});
      total.reads = total.writes = {sum};
      ready = add_op(stage_.program, std::move(total));
    }
    if (!to_host) return;
    std::vector<Dependency> after = {{ready}};
    if (fetched >= 0) after.push_back({fetched});
    host_->copy_gradients(item, b, sum, pass_gradients_[b], after);
  }

  void end_of_step() override {
    const std::size_t ops = stage_.program.ops.size();
    sync_tied_embedding(plan_, stage_);
    if (host_) host_->copy_remaining(stage_.program.ops.size() > ops ? static_cast<int>(ops) : -1);
    std::vector<int> updated_buckets;  // by bucket: the op after which its weights are up to date
    const int updated =
        host_ ? host_->update(updated_buckets) : add_op(stage_.program, optimizer_op(plan_, stage_));
    if (!host_) updated_buckets.assign(stage_.buckets.size(), updated);
    if (first_gather_ >= 0) stage_.program.ops[first_gather_].after.push_back({updated, 1});
    if (state_.shards > 1 && (zero_ == 1 || zero_ == 2)) gather_updated(updated_buckets);
  }

private:
  struct PartShards {
    BucketPart part;
    PartHolders held;
  };
  std::vector<PartShards> shards_of(std::size_t b) const {
    std::vector<PartShards> all;
    for (BucketPart& part : parts_of(plan_, stage_.buckets[b])) {
      PartHolders held = part_holders(plan_, part, state_.shards);
      all.push_back({std::move(part), std::move(held)});
    }
    return all;
  }

  Op collective_of(std::string name, const std::string& stream, CollectiveKind kind, std::size_t b,
                   double bytes, const std::vector<GroupAxis>& axes) {
    Op op = collective_op(plan_, stage_.program, std::move(name), stream, kind, bytes, &axes);
    op.first_layer = stage_.buckets[b].first_layer;
    op.last_layer = stage_.buckets[b].last_layer;
    return op;
  }

  // Returns the fraction of the bucket's weight bytes that is gathered. The tables of the embedding and of
  // the logits are not cast.
  double weights_gathered_share(const Bucket& bucket) const {
    const bool at_an_end =
        bucket.first_layer == 0 || bucket.last_layer + 1 == static_cast<int>(plan_.model.size());
    return at_an_end ? 1 : gathered_share(plan_.scenario);
  }

  std::vector<Op> gather_ops(const std::string& name, const std::string& stream, std::size_t b) {
    std::vector<Op> gathers;
    for (const PartShards& its : shards_of(b)) {
      if (its.held.shards == 1) continue;
      Op op = collective_of(name + its.part.name, stream, CollectiveKind::all_gather, b,
                            its.part.parameters * element_bytes(plan_.scenario.training.precision) *
                                weights_gathered_share(stage_.buckets[b]),
                            its.held.shard);
      op.purpose = Purpose::weights;
      op.action.kind = Action::Kind::gather_weights;
      op.action.part = its.part.number;
      op.reads = {stage_.weights[b]};
      gathers.push_back(std::move(op));
    }
    return gathers;
  }

  // Stage 3: gathers a unit's weights for a pass, unless they are still gathered. The gather can begin while
  // up to `prefetch` passes over other units have not ended yet.
  Weights gather_for(const PassItem& item, std::size_t b) {
    if (uses_ > 0) passed_.push_back(last_op_of_stream(stage_.program, compute_));
    ++uses_;
    if (!state_.reshard) {
      const bool kept = item.pass == Pass::forward ? in_flight_[b]++ > 0 : in_flight_[b]-- > 0;
      if (kept) return {-1, gathered_[b]};
    }
    const bool ahead = overlaps_ && state_.prefetch > 0;
    const int behind = uses_ - 2 - (ahead ? state_.prefetch : 0);  // the use that must be over
    const bool fetches = plan_.scenario.strategy.offload.parameters != OffloadTo::none;
    std::vector<Op> gathers =
        gather_ops(bucket_text("all-gather", item, stage_.buckets[b]), overlaps_ ? "weights" : "compute", b);
    double bytes = 0;
    for (const PartShards& its : shards_of(b))
      if (its.held.shards > 1 || fetches)
        bytes += its.part.parameters * element_bytes(plan_.scenario.training.precision);
    gathered_[b] = add_buffer(stage_.program, bucket_text("weights for", item, stage_.buckets[b]), bytes);
    int number = -1, shard = -1;
    std::vector<Dependency> after;
    if (behind >= 0) after = {{passed_[static_cast<std::size_t>(behind)]}};
    if (fetches) {
      std::vector<int> writes = {gathered_[b]};
      if (!gathers.empty()) {
        shard = add_buffer(stage_.program, bucket_text("shard of weights for", item, stage_.buckets[b]),
                           kept_parameters(plan_, stage_.buckets[b], stage_.held.weights) *
                               element_bytes(plan_.scenario.training.precision));
        writes.push_back(shard);
      }
      const HostCopies::Fetched fetched =
          host_->fetch_weights(item, b, after.empty() ? -1 : after.front().op, std::move(writes));
      if (first_gather_ < 0) first_gather_ = fetched.first;
      after = {{fetched.last}};
      number = fetched.last;
    }
    for (Op& gather : gathers) {
      gather.microbatch = item.microbatch;
      gather.after = after;
      if (shard >= 0) gather.reads = {shard};
      gather.writes = {gathered_[b]};
      number = add_op(stage_.program, std::move(gather));
      if (first_gather_ < 0) first_gather_ = number;
    }
    return {number, gathered_[b]};
  }

  // Stages 1 and 2: gathers all ranks' updated shards, in the order in which the next forward pass needs
  // them. `updated`: by bucket, the op that has updated the rank's own shard.
  void gather_updated(const std::vector<int>& updated) {
    const bool ahead = overlaps_ && state_.prefetch > 0;
    const int copies = add_gather_copies();
    for (std::size_t b = stage_.buckets.size(); b-- > 0;) {
      int number = -1;
      for (Op& gather : gather_ops(fmt::format("all-gather {}", layers_text(stage_.buckets[b])),
                                   ahead ? "weights" : "compute", b)) {
        gather.after = {{updated[b]}};
        gather.for_next_step = ahead;
        gather.writes = {stage_.weights[b]};
        if (copies >= 0) gather.writes.push_back(copies);
        number = add_op(stage_.program, std::move(gather));
      }
      if (ahead && number >= 0) before_first_use(b, number);
    }
  }

  // Returns the buffer of weights and of the rank's own shards that coalesced gathers fill and copy from
  // (torch.distributed.all_gather_coalesced), or -1.
  int add_gather_copies() {
    if (!plan_.scenario.framework.gather_copies) return -1;
    return add_buffer(
        stage_.program, "copies of gathered weights",
        stage_.parameters() * (1 + 1.0 / state_.shards) * element_bytes(plan_.scenario.training.precision));
  }

  const SharedState state_;
  const int zero_;
  const bool overlaps_;
  const int compute_;
  int first_gather_ = -1, uses_ = 0;
  std::vector<int> passed_;     // by use of a unit: the last op of its pass
  std::vector<int> in_flight_;  // by unit: micro-batches between forward and backward pass
  std::vector<int> gathered_;   // by unit: the tensor of its most recently gathered weights
  // By bucket: the tensor of the current pass's gradients, and the op that sent the previous ones.
  std::vector<int> pass_gradients_, scattered_;
  std::optional<HostCopies> host_;
};

}  // namespace

std::unique_ptr<StageHooks> shard_hooks(StepPlan& plan, int number, const SharedState& state) {
  const int zero = state.shards > 1 || offloads(plan) ? state.stage : 0;
  return std::make_unique<ShardHooks>(plan, number, zero, state);
}

}  // namespace rehearse
