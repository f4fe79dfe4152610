// ZeRO (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020),
// whose first stage is also Megatron-LM's distributed optimizer, and PyTorch FSDP (Zhao et al., "PyTorch
// FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023). Stage 1 shares out the optimizer
// state, stage 2 the gradients too, stage 3 and FSDP the weights too, which are gathered layer by layer.
#include "simulator/strategies/gradients/shards.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "models/text/document.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/program_writer.hpp"

namespace rehearse {
namespace {

enum class Fsdp { none, full, hybrid };
constexpr std::array<std::string_view, 3> kFsdpNames = {"none", "full", "hybrid"};

struct ShardChoice {
  int stage = 0;  // of ZeRO: 1 to 3
  Fsdp fsdp = Fsdp::none;
  int degree = 0;       // hybrid: ranks that share a copy; 0: those of a node
  int prefetch = 1;     // units whose weights are gathered ahead of their pass; 0: none are
  bool reshard = true;  // stage 3: weights are dropped behind the forward pass, too
};

// The data axis as `replicas` groups of `shards` ranks that together hold everything once.
struct ShardGroups {
  int shards = 1, replicas = 1;
};

// The largest number of neighbours on the data axis that lie in one node and divide the axis.
int shards_in_node(const Scenario& scenario) {
  int inside = 1;  // ranks between neighbours on the data axis
  for (const std::string& name : scenario.strategy.placement) {
    if (name == "data") break;
    inside *= find_axis(name)->degree(scenario.strategy);
  }
  return std::gcd(scenario.strategy.data, std::max(1, scenario.cluster->node().devices / inside));
}

ShardGroups shard_groups(const ShardChoice& choice, const Scenario& scenario) {
  const int data = scenario.strategy.data;
  if (choice.fsdp != Fsdp::hybrid) return {data, 1};
  const int shards = choice.degree > 0 ? choice.degree : shards_in_node(scenario);
  return {shards, data / shards};
}

// Writes the program of one pipeline stage.
class StageWriter {
public:
  StageWriter(StepPlan& plan, int number, const ShardChoice& choice)
      : plan_(plan),
        choice_(choice),
        groups_(shard_groups(choice, plan.scenario)),
        zero_(groups_.shards > 1 ? choice.stage : 0),
        overlaps_(plan.scenario.strategy.overlap) {
    const int shards = groups_.shards;
    StageTraffic traffic;
    traffic.sends_gradients = plan.scenario.strategy.data > 1;
    traffic.receives_weights = zero_ == 1 || zero_ == 2;
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
        return PassHooks::Gradients{pass_gradients_[b], scattered_[b]};
      };
    write_passes(plan_, stage_, hooks);
    if (stage_.parameters() > 0) {
      sync_tied_embedding(plan_, stage_);
      const int updated = add_op(stage_.program, optimizer_op(plan_, stage_));
      if (first_gather_ >= 0) stage_.program.ops[first_gather_].after.push_back({updated, 1});
      if (zero_ == 1 || zero_ == 2) gather_updated(updated);
    }
    end_stage(plan_, stage_);
    plan_.schedule.programs.push_back(std::move(stage_.program));
  }

private:
  // Every layer with weights, as FSDP wraps each block of a transformer.
  std::vector<Bucket> units(const LayerRange& layers) const {
    std::vector<double> parameters;
    for (int i = layers.first; i <= layers.last; ++i) parameters.push_back(plan_.layers[i].parameters);
    return gradient_buckets(parameters, layers.first, 1, 0, 0);
  }

  // "all-gather forward 3, layer 5": unique in the program.
  std::string named(std::string_view what, const PassItem& item, std::size_t b) const {
    return fmt::format("{} {} {}, {}", what, kPassNames[static_cast<std::size_t>(item.pass)], item.microbatch,
                       layers_text(stage_.buckets[b]));
  }

  Op collective_of(std::string name, const std::string& stream, CollectiveKind kind, std::size_t b,
                   double bytes) {
    Op op = collective_op(plan_, stage_.program, std::move(name), stream, kind, bytes);
    op.first_layer = stage_.buckets[b].first_layer;
    op.last_layer = stage_.buckets[b].last_layer;
    if (groups_.replicas > 1) op.collective.group.axes = {{plan_.data_axis, groups_.shards, 1, {}}};
    return op;
  }

  // Leaves each rank with the sum of its shard. Replicas of a shard are summed once, behind the last
  // micro-batch.
  void reduce_gradients(const PassItem& item, std::size_t b) {
    const std::string stream = overlaps_ ? "gradients" : "compute";
    const double bytes = gradient_bytes(plan_, stage_.buckets[b]);
    int& ready = stage_.backward_of_bucket[b];  // later users of the gradients wait for this op
    if (groups_.shards > 1) {
      Op scatter =
          collective_of(named("reduce-scatter", item, b), stream, CollectiveKind::reduce_scatter, b, bytes);
      scatter.microbatch = item.microbatch;
      scatter.action.kind = Action::Kind::scatter_gradients;
      scatter.after = {{ready}};
      scatter.reads = {zero_ >= 2 ? pass_gradients_[b] : stage_.gradients[b]};
      scatter.writes = {stage_.gradients[b]};
      ready = scattered_[b] = add_op(stage_.program, std::move(scatter));
    }
    if (groups_.replicas == 1 || item.microbatch < plan_.scenario.microbatches - 1) return;
    Op sum = collective_of(named("all-reduce", item, b), stream, CollectiveKind::all_reduce, b,
                           bytes / groups_.shards);
    sum.collective.group.axes = {{plan_.data_axis, groups_.replicas, groups_.shards, {}}};
    sum.after = {{ready}};
    sum.reads = sum.writes = {stage_.gradients[b]};
    ready = add_op(stage_.program, std::move(sum));
  }

  Op gather_op(std::string name, const std::string& stream, std::size_t b) {
    Op op = collective_of(std::move(name), stream, CollectiveKind::all_gather, b,
                          stage_.buckets[b].parameters * element_bytes(plan_.scenario.training.precision));
    op.purpose = Purpose::weights;
    op.action.kind = Action::Kind::gather_weights;
    op.reads = {stage_.weights[b]};
    return op;
  }

  // Stage 3: gathers a unit's weights for a pass, unless they are still there. The gather may begin while up
  // to `prefetch` passes over other units are still to end.
  PassHooks::Weights gather_for(const PassItem& item, std::size_t b) {
    if (uses_ > 0) passed_.push_back(last_op_of_stream(stage_.program, compute_));
    ++uses_;
    if (!choice_.reshard) {
      const bool kept = item.pass == Pass::forward ? in_flight_[b]++ > 0 : in_flight_[b]-- > 0;
      if (kept) return {-1, gathered_[b]};
    }
    const bool ahead = overlaps_ && choice_.prefetch > 0;
    Op gather = gather_op(named("all-gather", item, b), overlaps_ ? "weights" : "compute", b);
    gather.microbatch = item.microbatch;
    const int behind = uses_ - 2 - (ahead ? choice_.prefetch : 0);  // the use that must be over
    if (behind >= 0) gather.after = {{passed_[static_cast<std::size_t>(behind)]}};
    gathered_[b] = add_buffer(stage_.program, named("weights for", item, b), gather.collective.bytes.base);
    gather.writes = {gathered_[b]};
    const int number = add_op(stage_.program, std::move(gather));
    if (first_gather_ < 0) first_gather_ = number;
    return {number, gathered_[b]};
  }

  // Stages 1 and 2: all ranks' updated shards, in the order in which the next forward pass needs them.
  void gather_updated(int updated) {
    const bool ahead = overlaps_ && choice_.prefetch > 0;
    for (std::size_t b = stage_.buckets.size(); b-- > 0;) {
      if (stage_.buckets[b].parameters == 0) continue;
      Op gather = gather_op(fmt::format("all-gather {}", layers_text(stage_.buckets[b])),
                            ahead ? "weights" : "compute", b);
      gather.after = {{updated}};
      gather.for_next_step = ahead;
      gather.writes = {stage_.weights[b]};
      const int number = add_op(stage_.program, std::move(gather));
      if (ahead) stage_.program.ops[stage_.forward_of_bucket[b]].after.push_back({number, 1});
    }
  }

  StepPlan& plan_;
  const ShardChoice& choice_;
  const ShardGroups groups_;
  const int zero_;  // the stage of ZeRO, 0 where nothing is shared out
  const bool overlaps_;
  StageProgram stage_;
  int compute_ = 0, first_gather_ = -1, uses_ = 0;
  std::vector<int> passed_;     // by use of a unit: the last op of its pass
  std::vector<int> in_flight_;  // by unit: micro-batches between forward and backward pass
  std::vector<int> gathered_;   // by unit: tensor of the weights gathered last
  // By bucket: the tensor of the gradients of the pass at work, and the op that sent those before.
  std::vector<int> pass_gradients_, scattered_;
};

class Shards : public GradientStrategy {
public:
  explicit Shards(ShardChoice choice) : choice_(choice) {}

  std::string headline(const Scenario& scenario) const override {
    if (choice_.fsdp == Fsdp::none) return fmt::format("ZeRO-{}", choice_.stage);
    const ShardGroups groups = shard_groups(choice_, scenario);
    return choice_.fsdp == Fsdp::full ? "FSDP" : fmt::format("hybrid FSDP, shards of {}", groups.shards);
  }

  void fit(Section& strategy, const Scenario& scenario) const override {
    if (choice_.degree > 0 && scenario.strategy.data % choice_.degree != 0)
      strategy.refuse("shard_degree", fmt::format("{}", choice_.degree),
                      fmt::format("a divisor of {}, strategy.data", scenario.strategy.data));
  }

  Advice less_communication(const Scenario& scenario, const LinkPlace& busiest) const override {
    if (choice_.stage < 2 || scenario.microbatches == 1)
      return GradientStrategy::less_communication(scenario, busiest);
    const StateBytes bytes = held_whole(scenario);
    Advice advice{"stage 1 sends gradients once a step, not behind each micro-batch",
                  {"strategy.zero_stage=1"},
                  bytes.gradient + (choice_.stage == 3 ? bytes.weight : 0)};
    if (choice_.fsdp != Fsdp::none) advice.sets.insert(advice.sets.begin(), "strategy.fsdp=none");
    return advice;
  }

  Advice less_gathering(const Scenario& scenario) const override {
    if (scenario.strategy.overlap && choice_.prefetch == 0)
      return {"weights that are gathered ahead hide behind computation", {"strategy.prefetch=1"}};
    if (choice_.stage < 3 || !choice_.reshard) return {};
    return {"keeping the weights from the forward to the backward pass would send a third less",
            {"strategy.reshard_after_forward=false"},
            held_whole(scenario).weight};
  }

  Advice less_memory(const Scenario& scenario, const HeldBytes& held, double over_bytes) const override {
    return choice_.fsdp == Fsdp::none ? more_shards(scenario, choice_.stage, held, over_bytes) : Advice{};
  }

  void write(StepPlan& plan) const override {
    for (int s = 0; s < plan.scenario.strategy.pipeline; ++s) StageWriter(plan, s, choice_).write();
    if (plan.tied_parameters > 0)
      plan.notes.push_back("First and last stage each keep the tied embedding and add up its gradients.");
  }

private:
  // Bytes of a pipeline stage, a mean over all, if a rank held all of it.
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

Advice more_shards(const Scenario& scenario, int stage, const GradientStrategy::HeldBytes& held,
                   double over_bytes) {
  const double ranks = scenario.strategy.data;
  const std::array<double, 3> shared_out = {held.optimizer, held.gradients, held.weights};
  double saved = 0;
  for (int more = stage; more < 3; ++more) {
    saved += shared_out[static_cast<std::size_t>(more)] * (1 - 1 / ranks);
    if (saved >= over_bytes)
      return {fmt::format("{:.0f} ranks can share out {}", ranks,
                          more == 0   ? "the optimizer's state"
                          : more == 1 ? "optimizer state and gradients"
                                      : "optimizer state, gradients and weights"),
              {fmt::format("strategy.zero_stage={}", more + 1)}};
  }
  return {};
}

std::shared_ptr<const GradientStrategy> read_shards(Section& strategy, const StrategyChoice& choice) {
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
    strategy.refuse("shard_degree", fmt::format("{} with {}", shards.degree, fsdp_text),
                    "fsdp = \"hybrid\", or no such key");
  if (shards.stage < 3 && !shards.reshard)
    strategy.refuse("reshard_after_forward", fmt::format("false with zero_stage = {}", shards.stage),
                    "zero_stage = 3 or fsdp, or no such key");
  if (shards.stage == 0) return nullptr;
  if (choice.gradients != "all-reduce")
    strategy.refuse(
        fsdp ? "fsdp" : "zero_stage",
        fmt::format("{} with gradients = \"{}\"",
                    fsdp ? fmt::format("\"{}\"", kFsdpNames[static_cast<std::size_t>(shards.fsdp)])
                         : fmt::format("{}", shards.stage),
                    choice.gradients),
        fmt::format("gradients = \"all-reduce\", or {}", fsdp ? "\"none\"" : "0"));
  return std::make_shared<Shards>(shards);
}

}  // namespace rehearse
