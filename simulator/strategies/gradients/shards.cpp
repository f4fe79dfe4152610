// ZeRO (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020),
// whose first stage is also Megatron-LM's distributed optimizer, and PyTorch FSDP (Zhao et al., "PyTorch
// FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023). Stage 1 shards the optimizer state,
// stage 2 also the gradients, and stage 3 and FSDP also the weights, which are gathered layer by layer. A
// rank's state can be offloaded from its device (offload.hpp).
#include "simulator/strategies/gradients/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "models/text/document.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/offload.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/program_writer.hpp"

namespace rehearse {
namespace {

enum class Fsdp { none, full, hybrid };
constexpr std::array<std::string_view, 3> kFsdpNames = {"none", "full", "hybrid"};

struct ShardChoice {
  int stage = 0;  // ZeRO stage: 1 to 3
  Fsdp fsdp = Fsdp::none;
  int degree = 0;       // hybrid: ranks that share one copy; 0: those of a node
  int prefetch = 1;     // units whose weights are gathered ahead of their pass; 0: none
  bool reshard = true;  // stage 3: weights are also dropped after the forward pass
};

// Divides the ranks with the same weights into `replicas` groups of `shards` ranks; each group holds
// everything once.
struct ShardGroups {
  int shards = 1, replicas = 1;
};

// Returns the largest number of neighbours with the same weights that share a node and divide the number of
// all of them.
int shards_in_node(const Scenario& scenario) {
  int inside = 1;  // ranks between such neighbours
  for (const std::string& name : scenario.strategy.placement) {
    const AxisEntry* axis = find_axis(name);
    if (axis->same_weights && axis->degree(scenario.strategy) > 1) break;
    inside *= axis->degree(scenario.strategy);
  }
  return std::gcd(weight_copies(scenario.strategy), std::max(1, scenario.cluster->node().devices / inside));
}

ShardGroups shard_groups(const ShardChoice& choice, const Scenario& scenario) {
  const int ranks = weight_copies(scenario.strategy);
  if (choice.fsdp != Fsdp::hybrid) return {ranks, 1};
  const int shards = choice.degree > 0 ? choice.degree : shards_in_node(scenario);
  return {shards, ranks / shards};
}

// Writes the program of one pipeline stage.
class StageWriter {
public:
  StageWriter(StepPlan& plan, int number, const ShardChoice& choice)
      : plan_(plan),
        choice_(choice),
        offload_(plan.scenario.strategy.offload),
        offloads_(offload_.optimizer != OffloadTo::none),
        groups_(shard_groups(choice, plan.scenario)),
        zero_(groups_.shards > 1 || offloads_ ? choice.stage : 0),
        overlaps_(plan.scenario.strategy.overlap) {
    const int shards = groups_.shards;
    StageTraffic traffic;
    traffic.sends_gradients = gradient_ranks(plan) > 1 || offloads_;
    traffic.receives_weights = shards > 1 && (zero_ == 1 || zero_ == 2);
    traffic.every_forward = zero_ == 3;
    traffic.every_backward = zero_ >= 2;
    traffic.held = {zero_ == 3 ? shards : 1, zero_ >= 2 ? shards : 1, zero_ >= 1 ? shards : 1};
    stage_ = zero_ < 3 ? begin_stage(plan, number, traffic)
                       : begin_stage(plan, number, traffic,
                                     [&](const LayerRange& layers) { return units(layers); });
    compute_ = stream_named(stage_.program, "compute");
    in_flight_.assign(stage_.buckets.size(), 0);
    gathered_.resize(stage_.buckets.size());
    pass_gradients_.assign(stage_.buckets.size(), -1);
    scattered_.assign(stage_.buckets.size(), -1);
    if (offloads_) place_tensors();
  }

  void write() {
    PassHooks hooks;
    hooks.behind_bucket = [&](const PassItem& item, std::size_t b) {
      if (stage_.buckets[b].parameters > 0) reduce_gradients(item, b);
    };
    if (zero_ == 3)
      hooks.gather_weights = [&](const PassItem& item, std::size_t b) { return gather_for(item, b); };
    if (zero_ >= 2)
      hooks.gradients_of_pass = [&](const PassItem& item, std::size_t b) {
        pass_gradients_[b] = add_buffer(stage_.program, named("gradients of", item, b),
                                        gradient_bytes(plan_, stage_.buckets[b]));
        return PassHooks::Gradients{pass_gradients_[b], offloads_ ? copied_before() : scattered_[b]};
      };
    write_passes(plan_, stage_, hooks);
    if (stage_.parameters() > 0) {
      const std::size_t ops = stage_.program.ops.size();
      sync_tied_embedding(plan_, stage_);
      if (offloads_) copy_remaining(stage_.program.ops.size() > ops ? static_cast<int>(ops) : -1);
      std::vector<int> updated_buckets;  // by bucket: the op after which its weights are up to date
      const int updated =
          offloads_ ? update_on_host(updated_buckets) : add_op(stage_.program, optimizer_op(plan_, stage_));
      if (!offloads_) updated_buckets.assign(stage_.buckets.size(), updated);
      if (first_gather_ >= 0) stage_.program.ops[first_gather_].after.push_back({updated, 1});
      if (groups_.shards > 1 && (zero_ == 1 || zero_ == 2)) gather_updated(updated_buckets);
    }
    end_stage(plan_, stage_);
    plan_.schedule.programs.push_back(std::move(stage_.program));
  }

private:
  // Returns one bucket per layer with weights, as FSDP wraps each block of a transformer.
  std::vector<Bucket> units(const LayerRange& layers) const {
    std::vector<double> parameters;
    for (int i = layers.first; i <= layers.last; ++i) parameters.push_back(plan_.layers[i].parameters);
    return gradient_buckets(parameters, layers.first, 1, 0, 0);
  }

  // Returns "all-gather forward 3, layer 5", for example, which is unique in the program.
  std::string named(std::string_view what, const PassItem& item, std::size_t b) const {
    return fmt::format("{} {} {}, {}", what, kPassNames[static_cast<std::size_t>(item.pass)], item.microbatch,
                       layers_text(stage_.buckets[b]));
  }

  struct PartShards {
    BucketPart part;
    PartHolders held;
  };
  std::vector<PartShards> shards_of(std::size_t b) const {
    std::vector<PartShards> all;
    for (BucketPart& part : parts_of(plan_, stage_.buckets[b])) {
      PartHolders held = part_holders(plan_, part, groups_.shards);
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

  // ----- offloaded state

  // Call after begin_stage(). From stage 2 on, the sum of the gradients is stored in host memory; at stage 1,
  // a copy of it is.
  void place_tensors() {
    last_copy_.assign(stage_.buckets.size(), -1);
    fetched_.assign(stage_.buckets.size(), -1);
    const auto lies = [&](int tensor, TensorMemory memory) {
      if (tensor >= 0) stage_.program.tensors[static_cast<std::size_t>(tensor)].memory = memory;
    };
    const StateBytes bytes = state_bytes(plan_.scenario.training.optimizer, plan_.scenario.training.precision,
                                         plan_.scenario.training.gradient_precision);
    for (std::size_t b = 0; b < stage_.buckets.size(); ++b) {
      lies(stage_.weights[b], memory_of(offload_.parameters));
      if (zero_ >= 2) lies(stage_.gradients[b], TensorMemory::host);
      host_gradients_.push_back(stage_.gradients[b]);
      if (zero_ >= 2 || stage_.gradients[b] < 0) continue;
      Tensor copy = stage_.program.tensors[static_cast<std::size_t>(stage_.gradients[b])];
      copy.name += " in host memory";
      copy.memory = TensorMemory::host;
      copy.shards = stage_.held.optimizer;
      copy.bytes = kept_parameters(plan_, stage_.buckets[b], copy.shards) * bytes.gradient;
      host_gradients_[b] = add_tensor(stage_.program, std::move(copy));
    }
  }

  // A backward pass waits for the copy of the gradients of the pass before the last: there are two buffers.
  int copied_before() const { return copies_.size() < 2 ? -1 : copies_[copies_.size() - 2]; }

  // Returns a copy of the sum of a bucket's gradients, of the size of a rank's shard.
  Op gradient_copy(std::string name, std::size_t b, HostAction action) {
    const bool to_host = action == HostAction::copy_to_host;
    Op op = host_op(stage_.program, std::move(name),
                    overlaps_ ? to_host ? kToHostStream : kToDeviceStream : "compute", action,
                    stage_.buckets[b], shard_bytes(b));
    op.pass = Pass::gradient_sync;
    return op;
  }
  double shard_bytes(std::size_t b) const {
    return kept_parameters(plan_, stage_.buckets[b], stage_.held.optimizer) *
           element_bytes(plan_.scenario.training.gradient_precision);
  }

  // Stages 2 and 3 add a micro-batch's gradients to the sum in host memory on the device, as DeepSpeed does
  // (stage_1_and_2.py, async_accumulate_grad_in_cpu_via_gpu; stage3.py, partition_grads): the sum so far is
  // copied back. The addition itself is not counted. Returns -1 if there is no sum yet.
  int fetch_sum(const PassItem& item, std::size_t b, int complete) {
    if (last_copy_[b] < 0) return -1;
    Op fetch = gradient_copy(named("copy gradients back", item, b), b, HostAction::copy_to_device);
    fetched_[b] = add_buffer(stage_.program, named("sum of gradients before", item, b), shard_bytes(b));
    fetch.microbatch = item.microbatch;
    fetch.after = {{complete}, {last_copy_[b]}};
    fetch.reads = {stage_.gradients[b]};
    fetch.writes = {fetched_[b]};
    return add_op(stage_.program, std::move(fetch));
  }

  // `sum`: the tensor that holds the gradients on the device. A tied embedding's gradients wait for those of
  // the other stage.
  void copy_to_host(const PassItem& item, std::size_t b, int sum, const std::vector<Dependency>& after) {
    Op copy = gradient_copy(named("copy gradients to host", item, b), b, HostAction::copy_to_host);
    copy.microbatch = item.microbatch;
    copy.after = after;
    copy.reads = {sum};
    if (sum != pass_gradients_[b]) copy.reads.push_back(pass_gradients_[b]);
    if (fetched_[b] >= 0) copy.reads.push_back(fetched_[b]);
    copy.writes = {stage_.gradients[b]};
    if (item.microbatch == plan_.scenario.microbatches - 1 && holds_tied_embedding(plan_, stage_, b)) {
      tied_sum_ = sum;
      tied_copy_ = std::move(copy);
      return;
    }
    copies_.push_back(last_copy_[b] = add_op(stage_.program, std::move(copy)));
  }

  // Copies the gradients that are not yet in host memory after the passes: at stage 1 all of them, else those
  // of a tied embedding. `tied`: the op that has summed the latter; -1: none.
  void copy_remaining(int tied) {
    if (tied_copy_) {
      Op& sum = stage_.program.ops[static_cast<std::size_t>(tied)];
      sum.reads = sum.writes = {tied_sum_};
      tied_copy_->after.push_back({tied});
      copies_.push_back(add_op(stage_.program, *std::move(tied_copy_)));
    }
    for (std::size_t b = 0; zero_ == 1 && b < stage_.buckets.size(); ++b) {
      if (stage_.buckets[b].parameters == 0) continue;
      Op copy = gradient_copy(fmt::format("copy gradients to host, {}", layers_text(stage_.buckets[b])), b,
                              HostAction::copy_to_host);
      copy.after = {{stage_.backward_of_bucket[b]}};
      if (holds_tied_embedding(plan_, stage_, b)) copy.after.push_back({tied});
      copy.reads = {stage_.gradients[b]};
      copy.writes = {host_gradients_[b]};
      copies_.push_back(add_op(stage_.program, std::move(copy)));
    }
  }

  // Writes the update and returns the index of a device op that waits for all of it. Sets `updated`, by
  // bucket, to the op after which its weights are up to date.
  int update_on_host(std::vector<int>& updated) {
    HostUpdate update = write_host_update(plan_, stage_, host_gradients_, copies_.back());
    Op wait = marker(plan_, stage_, "wait for the host's update");
    wait.pass = Pass::optimizer;
    for (const int last : update.last) wait.after.push_back({last});
    for (const int send : stage_.sends) wait.after.push_back({send});
    updated = std::move(update.updated);
    return add_op(stage_.program, std::move(wait));
  }

  // The first and the last op of fetch_weights(), which copies a rank's shard of a bucket's weights to the
  // device from where it is stored, after op `behind` (-1: immediately).
  struct Fetched {
    int first = -1, last = -1;
  };
  Fetched fetch_weights(const PassItem& item, std::size_t b, int behind, std::vector<int> writes) {
    const Bucket& bucket = stage_.buckets[b];
    const double bytes = kept_parameters(plan_, bucket, stage_.held.weights) *
                         element_bytes(plan_.scenario.training.precision);
    const auto write = [&](Op op, int reads, std::vector<int> its_writes) {
      op.microbatch = item.microbatch;
      op.reads = {reads};
      op.writes = std::move(its_writes);
      return add_op(stage_.program, std::move(op));
    };
    Fetched fetched;
    int source = stage_.weights[b];
    if (offload_.parameters == OffloadTo::nvme) {
      const int staged = add_host_buffer(stage_.program, named("weights read for", item, b), bytes);
      Op read = host_op(stage_.program, named("read weights", item, b), kNvmeReadStream,
                        HostAction::read_nvme, bucket, bytes);
      if (behind >= 0) read.after = {{behind}};
      fetched.first = fetched.last = write(std::move(read), source, {staged});
      source = staged;
    }
    Op copy = host_op(stage_.program, named("copy weights to device", item, b),
                      overlaps_ ? kToDeviceStream : "compute", HostAction::copy_to_device, bucket, bytes);
    if (fetched.last >= 0)
      copy.after = {{fetched.last}};
    else if (behind >= 0)
      copy.after = {{behind}};
    fetched.last = write(std::move(copy), source, std::move(writes));
    if (fetched.first < 0) fetched.first = fetched.last;
    return fetched;
  }

  // ----- exchanges with other ranks

  // Leaves each rank with the sum of its shard. Replicas of a shard are summed once, after the last
  // micro-batch.
  void reduce_gradients(const PassItem& item, std::size_t b) {
    const std::string stream = overlaps_ ? "gradients" : "compute";
    const double element = element_bytes(plan_.scenario.training.gradient_precision);
    const int complete = stage_.backward_of_bucket[b];
    int& ready = stage_.backward_of_bucket[b];  // later users of the gradients wait for this op
    const bool to_host = offloads_ && zero_ >= 2;
    const std::vector<PartShards> parts = shards_of(b);
    const bool scatters =
        std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p.held.shards > 1; });
    const int whole = zero_ >= 2 ? pass_gradients_[b] : stage_.gradients[b];
    const int sum = !to_host ? stage_.gradients[b]
                    : scatters
                        ? add_buffer(stage_.program, named("sum of gradients", item, b), shard_bytes(b))
                        : whole;
    const int fetched = to_host ? fetch_sum(item, b, complete) : -1;
    for (const PartShards& its : parts) {
      const double bytes = its.part.parameters * element;
      int last = complete;
      if (its.held.shards > 1) {
        Op scatter = collective_of(named("reduce-scatter", item, b) + its.part.name, stream,
                                   CollectiveKind::reduce_scatter, b, bytes, its.held.shard);
        scatter.microbatch = item.microbatch;
        scatter.action.kind = Action::Kind::scatter_gradients;
        scatter.action.part = its.part.number;
        scatter.after = {{last}};
        scatter.reads = {whole};
        scatter.writes = {sum};
        ready = last = scattered_[b] = add_op(stage_.program, std::move(scatter));
      }
      if (its.held.replicas.empty() || item.microbatch < plan_.scenario.microbatches - 1) continue;
      Op total = collective_of(named("all-reduce", item, b) + its.part.name, stream,
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
    copy_to_host(item, b, sum, after);
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
  PassHooks::Weights gather_for(const PassItem& item, std::size_t b) {
    if (uses_ > 0) passed_.push_back(last_op_of_stream(stage_.program, compute_));
    ++uses_;
    if (!choice_.reshard) {
      const bool kept = item.pass == Pass::forward ? in_flight_[b]++ > 0 : in_flight_[b]-- > 0;
      if (kept) return {-1, gathered_[b]};
    }
    const bool ahead = overlaps_ && choice_.prefetch > 0;
    const int behind = uses_ - 2 - (ahead ? choice_.prefetch : 0);  // the use that must be over
    const bool fetches = offload_.parameters != OffloadTo::none;
    std::vector<Op> gathers = gather_ops(named("all-gather", item, b), overlaps_ ? "weights" : "compute", b);
    double bytes = 0;
    for (const PartShards& its : shards_of(b))
      if (its.held.shards > 1 || fetches)
        bytes += its.part.parameters * element_bytes(plan_.scenario.training.precision);
    gathered_[b] = add_buffer(stage_.program, named("weights for", item, b), bytes);
    int number = -1, shard = -1;
    std::vector<Dependency> after;
    if (behind >= 0) after = {{passed_[static_cast<std::size_t>(behind)]}};
    if (fetches) {
      std::vector<int> writes = {gathered_[b]};
      if (!gathers.empty()) {
        shard = add_buffer(stage_.program, named("shard of weights for", item, b),
                           kept_parameters(plan_, stage_.buckets[b], stage_.held.weights) *
                               element_bytes(plan_.scenario.training.precision));
        writes.push_back(shard);
      }
      const Fetched fetched =
          fetch_weights(item, b, after.empty() ? -1 : after.front().op, std::move(writes));
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
    const bool ahead = overlaps_ && choice_.prefetch > 0;
    for (std::size_t b = stage_.buckets.size(); b-- > 0;) {
      int number = -1;
      for (Op& gather : gather_ops(fmt::format("all-gather {}", layers_text(stage_.buckets[b])),
                                   ahead ? "weights" : "compute", b)) {
        gather.after = {{updated[b]}};
        gather.for_next_step = ahead;
        gather.writes = {stage_.weights[b]};
        number = add_op(stage_.program, std::move(gather));
      }
      if (ahead && number >= 0) stage_.program.ops[stage_.forward_of_bucket[b]].after.push_back({number, 1});
    }
  }

  StepPlan& plan_;
  const ShardChoice& choice_;
  const OffloadChoice& offload_;
  const bool offloads_;
  const ShardGroups groups_;
  const int zero_;  // ZeRO stage; 0 if nothing is sharded or offloaded
  const bool overlaps_;
  StageProgram stage_;
  int compute_ = 0, first_gather_ = -1, uses_ = 0;
  std::vector<int> passed_;     // by use of a unit: the last op of its pass
  std::vector<int> in_flight_;  // by unit: micro-batches between forward and backward pass
  std::vector<int> gathered_;   // by unit: the tensor of its most recently gathered weights
  // By bucket: the tensor of the current pass's gradients, and the op that sent the previous ones.
  std::vector<int> pass_gradients_, scattered_;
  // With offload, by bucket: the sum of its gradients in host memory, the op that last copied it there, and
  // the buffer to which it was copied back.
  std::vector<int> host_gradients_, last_copy_, fetched_;
  std::vector<int> copies_;  // copies of gradients to host memory, in order
  std::optional<Op> tied_copy_;
  int tied_sum_ = -1;
};

class Shards : public GradientStrategy {
public:
  explicit Shards(ShardChoice choice) : choice_(choice) {}

  std::string headline(const Scenario& scenario) const override {
    const std::string where = offload_text(scenario.strategy.offload);
    if (choice_.fsdp == Fsdp::none) return fmt::format("ZeRO-{}{}", choice_.stage, where);
    const ShardGroups groups = shard_groups(choice_, scenario);
    return (choice_.fsdp == Fsdp::full ? "FSDP" : fmt::format("hybrid FSDP, shards of {}", groups.shards)) +
           where;
  }

  ContextGradients context_gradients() const override { return ContextGradients::with_data; }

  void fit(Section& strategy, const Scenario& scenario) const override {
    if (choice_.degree > 0 && weight_copies(scenario.strategy) % choice_.degree != 0)
      strategy.refuse("shard_degree", fmt::format("{}", choice_.degree),
                      fmt::format("a divisor of {}, strategy.data{}", weight_copies(scenario.strategy),
                                  scenario.strategy.context > 1 ? " x strategy.context" : ""));
    fit_offload(strategy, scenario);
  }

  Advice less_communication(const Scenario& scenario, const LinkPlace& busiest) const override {
    if (choice_.stage < 2 || scenario.microbatches == 1)
      return GradientStrategy::less_communication(scenario, busiest);
    const StateBytes bytes = held_whole(scenario);
    Advice advice{"stage 1 sends gradients once a step, not after each micro-batch",
                  {"strategy.zero_stage=1"},
                  bytes.gradient + (choice_.stage == 3 ? bytes.weight : 0)};
    if (choice_.fsdp != Fsdp::none) advice.sets.insert(advice.sets.begin(), "strategy.fsdp=none");
    return advice;
  }

  Advice less_gathering(const Scenario& scenario) const override {
    if (scenario.strategy.overlap && choice_.prefetch == 0)
      return {"weights that are gathered ahead overlap with computation", {"strategy.prefetch=1"}};
    if (choice_.stage < 3 || !choice_.reshard) return {};
    return {"keeping the weights from the forward to the backward pass would send a third less",
            {"strategy.reshard_after_forward=false"},
            held_whole(scenario).weight};
  }

  std::optional<SharedState> shared_state(const Scenario& scenario) const override {
    const ShardGroups groups = shard_groups(choice_, scenario);
    return SharedState{choice_.stage, groups.shards, groups.replicas, choice_.prefetch, choice_.reshard};
  }

  std::shared_ptr<const GradientStrategy> sharded(int stage) const override {
    return choice_.fsdp == Fsdp::none && stage > choice_.stage ? zero_stage(stage) : nullptr;
  }

  void write(StepPlan& plan) const override {
    for (int s = 0; s < plan.scenario.strategy.pipeline; ++s) StageWriter(plan, s, choice_).write();
    if (plan.tied_parameters > 0)
      plan.notes.emplace_back(
          "The first and the last stage both hold the tied embedding and add up its gradients.");
  }

private:
  // Returns the bytes of a pipeline stage (mean over all stages) if a rank held all of it.
  static StateBytes held_whole(const Scenario& scenario) {
    const Training& training = scenario.training;
    double parameters = 0;
    for (const LayerCost& layer : layer_costs(scenario.model, pass_shape(scenario)))
      parameters += layer.parameters / scenario.strategy.pipeline;
    StateBytes bytes = state_bytes(training.optimizer, training.precision, training.gradient_precision);
    for (double* each : {&bytes.weight, &bytes.gradient, &bytes.optimizer}) *each *= parameters;
    return bytes;
  }

  ShardChoice choice_;
};

}  // namespace

std::shared_ptr<const GradientStrategy> zero_stage(int stage) {
  ShardChoice choice;
  choice.stage = stage;
  return std::make_shared<Shards>(choice);
}

std::shared_ptr<const GradientStrategy> read_shards(Section& strategy, StrategyChoice& choice) {
  ShardChoice shards;
  shards.fsdp = static_cast<Fsdp>(strategy.choice("fsdp", kFsdpNames, 0));
  const bool fsdp = shards.fsdp != Fsdp::none;
  shards.stage = static_cast<int>(strategy.integer("zero_stage", 0, 3, fsdp ? 3 : 0));
  shards.prefetch = static_cast<int>(strategy.integer("prefetch", 0, 1000, 1));
  shards.reshard = strategy.boolean("reshard_after_forward", true);
  shards.degree = static_cast<int>(strategy.integer("shard_degree", 1, kMaxDegree, 1));
  if (!strategy.has("shard_degree")) shards.degree = 0;

  const auto fsdp_text = fmt::format("fsdp = \"{}\"", kFsdpNames[static_cast<std::size_t>(shards.fsdp)]);
  if (fsdp && shards.stage != 3)
    strategy.refuse("zero_stage", fmt::format("{} with {}", shards.stage, fsdp_text),
                    "3, or fsdp = \"none\"");
  if (shards.fsdp != Fsdp::hybrid && strategy.has("shard_degree"))
    strategy.refuse_inapplicable("shard_degree", fmt::format("{} with {}", shards.degree, fsdp_text),
                                 "fsdp = \"hybrid\", or no such key");
  if (shards.stage < 3 && !shards.reshard)
    strategy.refuse_inapplicable("reshard_after_forward",
                                 fmt::format("false with zero_stage = {}", shards.stage),
                                 "zero_stage = 3 or fsdp, or no such key");
  const OffloadChoice offload = read_offload(strategy, choice, shards.stage);
  if (choice.gradients == "all-reduce") choice.offload = offload;
  if (shards.stage == 0) return nullptr;
  if (choice.gradients != "all-reduce")
    strategy.refuse_inapplicable(
        fsdp ? "fsdp" : "zero_stage",
        fmt::format("{} with gradients = \"{}\"",
                    fsdp ? fmt::format("\"{}\"", kFsdpNames[static_cast<std::size_t>(shards.fsdp)])
                         : fmt::format("{}", shards.stage),
                    choice.gradients),
        fmt::format("gradients = \"all-reduce\", or {}", fsdp ? "\"none\"" : "0"));
  return std::make_shared<Shards>(shards);
}

}  // namespace rehearse
