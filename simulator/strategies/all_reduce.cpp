// Data parallelism: gradients are summed over the data axis, then every rank updates its own copy of the
// weights.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/costs/memory.hpp"
#include "simulator/strategies/algorithm.hpp"
#include "simulator/strategies/gradient_strategy.hpp"
#include "simulator/strategies/pipeline.hpp"

namespace rehearse {
namespace {

// Members of the group that the stage's first worker belongs to; the stage's other groups lie alike.
std::vector<Endpoint> endpoints_of(const StepPlan& plan, const StageProgram& stage, const Group& group) {
  const Role& workers = plan.schedule.roles.front();
  int first = 0;
  const auto at_stage = [&](int rank) {
    return std::all_of(stage.program.where.begin(), stage.program.where.end(), [&](const At& at) {
      return workers.meshes[at.mesh].coordinate(rank, at.axis) == at.coordinate;
    });
  };
  while (!at_stage(first)) ++first;
  std::vector<Endpoint> endpoints;
  for (const int rank : group_members(workers, group, first)) endpoints.push_back(plan.endpoints[rank]);
  return endpoints;
}

Op all_reduce(const StepPlan& plan, StageProgram& stage, std::string name, double bytes, int bucket) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::collective;
  op.stream = stream_named(stage.program, "gradients");
  op.pass = Pass::gradient_sync;
  op.first_layer = stage.buckets[bucket].first_layer;
  op.last_layer = stage.buckets[bucket].last_layer;
  op.collective.kind = CollectiveKind::all_reduce;
  op.collective.channels = plan.scenario.strategy.channels;
  op.collective.bytes = bytes;
  op.reads = op.writes = {stage.gradients[bucket]};
  return op;
}

// DDP does not sync the micro-batches before the last one (no_sync), whose backward pass triggers the
// buckets.
void sync_buckets(const StepPlan& plan, StageProgram& stage, AlgorithmChoice& choice, int backward_end) {
  const Group group{{{plan.data_axis, 0, 1, {}}}};
  const std::vector<Endpoint> members = endpoints_of(plan, stage, group);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    const Bucket& bucket = stage.buckets[b];
    if (bucket.parameters == 0) continue;
    Op op = all_reduce(plan, stage, fmt::format("all-reduce bucket {}", b), gradient_bytes(plan, bucket),
                       static_cast<int>(b));
    op.collective.group = group;
    op.collective.algorithm = choice.of(members, op.collective.bytes.base);
    op.after = {{plan.scenario.strategy.overlap ? stage.backward_of_bucket[b] : backward_end}};
    add_op(stage.program, std::move(op));
  }
}

// First and last stage each keep the table and add up their gradients, as Megatron-LM does.
void sync_tied_embedding(const StepPlan& plan, StageProgram& stage, AlgorithmChoice& choice) {
  const int layer = stage.stage == 0 ? stage.layers.first : stage.layers.last;
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    if (layer < stage.buckets[b].first_layer || layer > stage.buckets[b].last_layer) continue;
    Op op = all_reduce(plan, stage, "all-reduce tied embedding",
                       plan.tied_parameters * element_bytes(plan.scenario.training.gradient_precision),
                       static_cast<int>(b));
    op.first_layer = op.last_layer = layer;
    op.collective.group.axes = {{plan.pipeline_axis, 0, 1, {0, stage.stages - 1}}};
    op.collective.algorithm =
        choice.or_ring(endpoints_of(plan, stage, op.collective.group), op.collective.bytes.base);
    op.after = {{stage.backward_of_bucket[b]}};
    add_op(stage.program, std::move(op));
  }
}

void write_optimizer(StepPlan& plan, StageProgram& stage) {
  const Training& training = plan.scenario.training;
  const double per_parameter =
      state_bytes(training.optimizer, training.precision, training.gradient_precision).optimizer;
  Op op;
  op.name = "optimizer";
  op.stream = stream_named(stage.program, "compute");
  op.pass = Pass::optimizer;
  op.first_layer = stage.layers.first;
  op.last_layer = stage.layers.last;
  for (int send : stage.sends) op.after.push_back({send});
  const int sync = last_op_of_stream(stage.program, find_stream(stage.program, "gradients"));
  if (sync >= 0) op.after.push_back({sync});
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    const Bucket& bucket = stage.buckets[b];
    if (bucket.parameters == 0) continue;
    op.reads.push_back(stage.gradients[b]);
    op.writes.push_back(stage.weights[b]);
    if (per_parameter == 0) continue;
    Tensor state;
    state.kind = TensorKind::optimizer_state;
    state.name = fmt::format("optimizer state {}", b);
    state.first_layer = bucket.first_layer;
    state.last_layer = bucket.last_layer;
    state.bytes = bucket.parameters * per_parameter;
    op.writes.push_back(add_tensor(stage.program, std::move(state)));
  }
  Work work;
  work.name =
      fmt::format("{} stage {}", kOptimizerNames[static_cast<std::size_t>(training.optimizer)], stage.stage);
  work.precision = training.precision;
  work.parameters_updated = stage.parameters();
  work.optimizer_bytes = work.parameters_updated *
                         update_bytes(training.optimizer, training.precision, training.gradient_precision);
  plan.schedule.works.push_back(std::move(work));
  op.work = static_cast<int>(plan.schedule.works.size()) - 1;
  add_op(stage.program, std::move(op));
}

// All-reduces of the stage's buckets, each as soon as its backward pass is done (`overlap`) or all behind it,
// and of a tied embedding between first and last stage; then the optimizer's update.
void write_all_reduce(StepPlan& plan, StageProgram& stage, AlgorithmChoice& choice) {
  if (stage.parameters() == 0) return;
  const int backward_end = last_op_of_stream(stage.program, stream_named(stage.program, "compute"));
  if (plan.scenario.strategy.data > 1) sync_buckets(plan, stage, choice, backward_end);
  const bool ends_of_pipeline = stage.stage == 0 || stage.stage == stage.stages - 1;
  if (plan.tied_parameters > 0 && ends_of_pipeline) sync_tied_embedding(plan, stage, choice);
  write_optimizer(plan, stage);
}

class AllReduce : public GradientStrategy {
public:
  std::string headline(const Scenario& scenario) const override {
    return fmt::format("{} all-reduce",
                       kAlgorithmNames[static_cast<std::size_t>(scenario.strategy.all_reduce)]);
  }
  void fit(Section& strategy, const Scenario& scenario) const override {
    const Fabric::Kind kind = scenario.cluster->fabric().kind;
    if (scenario.strategy.all_reduce == Algorithm::torus && kind != Fabric::Kind::torus &&
        kind != Fabric::Kind::ring)
      strategy.refuse("all_reduce", "\"torus\", on a cluster whose fabric is no torus",
                      "another algorithm, or a fabric of kind \"torus\" or \"ring\"");
  }
  void write(StepPlan& plan) const override {
    const StageTraffic traffic{plan.scenario.strategy.data > 1, false};
    AlgorithmChoice choice(plan.scenario);
    write_stages(plan, traffic, [&](StageProgram& stage) { write_all_reduce(plan, stage, choice); });
    if (plan.tied_parameters > 0)
      plan.notes.push_back("First and last stage each keep the tied embedding and add up its gradients.");
  }
};

}  // namespace

extern const GradientStrategyEntry kAllReduceStrategy{
    "all-reduce", "data parallel: gradients are summed by all-reduce",
    "Every GPU trains its share of the batch with the whole model. Gradients are sent in buckets, while "
    "the\n"
    "backward pass still computes the next ones (unless overlap = false).",
    "data = 8                    # ranks that share the batch; may be left out\n"
    "gradients = \"all-reduce\"\n"
    "all_reduce = \"ring\"         # tree, halving-doubling, hierarchical, torus, or auto: the fastest of "
    "them\n"
    "bucket_mb = 25              # gradients sent together\n"
    "overlap = true\n",
    [](Section&, StrategyChoice&) -> std::shared_ptr<const GradientStrategy> {
      return std::make_shared<AllReduce>();
    }};

}  // namespace rehearse
