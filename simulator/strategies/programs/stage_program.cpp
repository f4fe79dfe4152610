#include "simulator/strategies/programs/stage_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "simulator/costs/memory.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

double StageProgram::parameters() const {
  double sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.parameters;
  return sum;
}

std::vector<At> at_stage(const StepPlan& plan, int stage) {
  if (plan.scenario.strategy.pipeline == 1) return {};
  return {{plan.pipeline_axis, stage, 0}};
}

std::vector<WeightHolders> weight_holders(const StepPlan& plan) {
  const Mesh& mesh = plan.schedule.roles.front().meshes.front();
  std::vector<WeightHolders> holders;
  for (int stage = 0; stage < plan.scenario.strategy.pipeline; ++stage) {
    std::vector<WeightHolders> here = {
        {stage, at_stage(plan, stage),
         plan.scenario.strategy.pipeline > 1 ? fmt::format(" of stage {}", stage) : std::string()}};
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
      const Axis& its = mesh.axes()[axis];
      if (axis == plan.data_axis || axis == plan.pipeline_axis || axis == plan.context_axis || its.size == 1)
        continue;
      std::vector<WeightHolders> apart;
      for (const WeightHolders& together : here)
        for (int c = 0; c < its.size; ++c) {
          apart.push_back(together);
          apart.back().where.push_back({axis, c, 0});
          apart.back().name += fmt::format("{} {} {}", together.name.empty() ? " of" : ",", its.name, c);
        }
      here = std::move(apart);
    }
    holders.insert(holders.end(), here.begin(), here.end());
  }
  return holders;
}

int gradient_ranks(const StepPlan& plan) {
  return group_size(plan.schedule.roles.front(), {plan.gradient_axes, 0});
}

int expert_ranks(const StepPlan& plan) {
  return group_size(plan.schedule.roles.front(), {plan.expert_axes, 0});
}

std::vector<BucketPart> parts_of(const StepPlan& plan, const Bucket& bucket) {
  std::vector<BucketPart> parts;
  if (const double dense = bucket.parameters - bucket.expert_parameters; dense > 0)
    parts.push_back({dense, plan.gradient_axes, gradient_ranks(plan), "", 0});
  if (bucket.expert_parameters > 0)
    parts.push_back({bucket.expert_parameters, plan.expert_axes, expert_ranks(plan), " of experts", 1});
  return parts;
}

PartHolders part_holders(const StepPlan& plan, const BucketPart& part, int shards) {
  if (shards == 1) return {1, {}, part.axes};
  const Mesh& mesh = plan.schedule.roles.front().meshes.front();
  const auto size = [&](const GroupAxis& its) {
    return its.block > 0 ? its.block : mesh.axes()[static_cast<std::size_t>(its.axis)].size;
  };
  std::map<int, int> extents;  // of a group along the axes of dense weights
  int left = shards;
  for (const GroupAxis& its : plan.gradient_axes) {
    const int inner = std::gcd(size(its), left);
    extents[its.axis] = inner;
    left /= inner;
  }
  PartHolders holders;
  for (const GroupAxis& its : part.axes) {
    const auto extent = extents.find(its.axis);
    int inner = size(its);
    if (extent != extents.end())
      inner = extent->second % its.stride == 0 ? std::gcd(inner, extent->second / its.stride) : 1;
    holders.shards *= inner;
    if (inner == size(its)) {
      holders.shard.push_back(its);
      continue;
    }
    if (inner > 1) holders.shard.push_back({its.axis, inner, its.stride, {}});
    holders.replicas.push_back({its.axis, size(its) / inner, inner * its.stride, {}});
  }
  return holders;
}

double kept_parameters(const StepPlan& plan, const Bucket& bucket, int shards) {
  double kept = 0;
  for (const BucketPart& part : parts_of(plan, bucket))
    kept += part.parameters / part_holders(plan, part, shards).shards;
  return kept;
}

double gradient_bytes(const StepPlan& plan, const Bucket& bucket) {
  return bucket.parameters * element_bytes(plan.scenario.training.gradient_precision);
}

std::string layers_text(const Bucket& bucket) {
  if (bucket.first_layer == bucket.last_layer) return fmt::format("layer {}", bucket.first_layer);
  return fmt::format("layers {}-{}", bucket.first_layer, bucket.last_layer);
}

std::string segments_text(const StepPlan& plan, int first, int end) {
  const Walk& walk = plan.walk;
  const int first_layer = walk.layer_of[first], last_layer = walk.layer_of[end - 1];
  if (walk.first_segment[first_layer] == first && walk.first_segment[last_layer + 1] == end)
    return layers_text({first_layer, last_layer});
  const auto name = [&](int segment) {
    return std::string(kSegmentNames[static_cast<std::size_t>(walk.segments[segment]->kind)]);
  };
  std::string text = fmt::format("layer {} {}", first_layer, name(first));
  if (first_layer != last_layer) return text + fmt::format(" to layer {} {}", last_layer, name(end - 1));
  return first + 1 == end ? text : text + " to " + name(end - 1);
}

Group group_of(const StepPlan& plan, const std::vector<int>& factors) {
  const Mesh& mesh = plan.schedule.roles.front().meshes.front();
  Group group;
  for (const int number : factors) {
    const Factor& factor = plan.walk.factors[static_cast<std::size_t>(number)];
    const int axis = mesh.axis(std::string(factor.axis));
    GroupAxis* last = group.axes.empty() ? nullptr : &group.axes.back();
    if (last && last->axis == axis && last->stride == factor.size * factor.stride) {
      last->block *= factor.size;  // neighbours on the same axis
      last->stride = factor.stride;
    } else {
      group.axes.push_back({axis, factor.size, factor.stride, {}});
    }
  }
  for (GroupAxis& part : group.axes)
    if (part.block == mesh.axes()[part.axis].size) part = {part.axis, 0, 1, {}};
  return group;
}

Op marker(StepPlan& plan, StageProgram& stage, const std::string& name) {
  Work work;
  work.name = name;
  work.precision = plan.scenario.training.precision;
  plan.schedule.works.push_back(work);
  Op op;
  op.name = name;
  op.stream = stream_named(stage.program, "compute");
  op.work = static_cast<int>(plan.schedule.works.size()) - 1;
  return op;
}

namespace {

// Returns buckets of segments. Parameters of a layer outside its segments (the last stage's copy of a tied
// table) count with its last segment.
std::vector<Bucket> segment_buckets(const StepPlan& plan, LayerRange layers) {
  const StrategyChoice& strategy = plan.scenario.strategy;
  const Walk& walk = plan.walk;
  const int first = walk.first_segment[layers.first];
  std::vector<double> parameters;
  for (int layer = layers.first; layer <= layers.last; ++layer) {
    double beside = plan.layers[layer].parameters;
    for (int s = walk.first_segment[layer]; s < walk.first_segment[layer + 1]; ++s) {
      parameters.push_back(walk.segments[s]->cost.parameters);
      beside -= parameters.back();
    }
    parameters.back() += beside;
  }
  std::vector<Bucket> buckets =
      gradient_buckets(parameters, first, element_bytes(plan.scenario.training.gradient_precision),
                       strategy.first_bucket_bytes, strategy.bucket_bytes);
  for (Bucket& bucket : buckets) {
    bucket.first_segment = bucket.first_layer;
    bucket.end_segment = bucket.last_layer + 1;
    bucket.first_layer = walk.layer_of[bucket.first_segment];
    bucket.last_layer = walk.layer_of[bucket.end_segment - 1];
    if (walk.first_segment[bucket.first_layer] == bucket.first_segment &&
        walk.first_segment[bucket.last_layer + 1] == bucket.end_segment) {
      bucket.first_segment = 0;
      bucket.end_segment = -1;
    }
  }
  return buckets;
}

// DistributedDataParallel treats every model chunk as a separate model with its own buckets.
std::vector<Bucket> chunk_buckets(const StepPlan& plan, LayerRange layers, bool sends_gradients) {
  // Compression works on complete layers, and so does the separate sum of experts' gradients.
  const StrategyChoice& strategy = plan.scenario.strategy;
  if (sends_gradients && strategy.bucket_unit == BucketUnit::tensor &&
      strategy.compression.kind == Compression::none && !places_experts(plan.scenario))
    return segment_buckets(plan, layers);
  std::vector<double> parameters;
  for (int i = layers.first; i <= layers.last; ++i) parameters.push_back(plan.layers[i].parameters);
  if (sends_gradients)
    return gradient_buckets(parameters, layers.first,
                            element_bytes(plan.scenario.training.gradient_precision),
                            plan.scenario.strategy.first_bucket_bytes, plan.scenario.strategy.bucket_bytes);
  return {{layers.first, layers.last, std::accumulate(parameters.begin(), parameters.end(), 0.0)}};
}

}  // namespace

StageProgram begin_stage(const StepPlan& plan, int number, StageTraffic traffic) {
  return begin_stage(plan, number, traffic, [&](const LayerRange& layers) {
    return chunk_buckets(plan, layers, traffic.sends_gradients);
  });
}

StageProgram begin_stage(const StepPlan& plan, int number, StageTraffic traffic, const BucketRule& rule) {
  const Scenario& scenario = plan.scenario;
  const StrategyChoice& strategy = scenario.strategy;
  StageProgram stage;
  stage.stage = number;
  stage.stages = strategy.pipeline;
  stage.program.name = strategy.pipeline > 1 ? fmt::format("stage {}", number) : "worker";
  stage.program.where = at_stage(plan, number);
  stage.program.streams = {"compute"};

  const PartPlacement placement = order_of(strategy.schedule).placement;
  const int parts = static_cast<int>(plan.parts.size());
  const auto holder = [&](int part) {
    return part < 0 || part >= parts ? -1 : stage_of_part(placement, stage.stages, part);
  };
  for (int c = 0; c < parts / stage.stages; ++c) {
    const int part = part_of(placement, stage.stages, number, c);
    stage.chunks.push_back({plan.parts[part], holder(part - 1), holder(part + 1)});
  }
  stage.layers = {stage.chunks.front().layers.first, stage.chunks.back().layers.last};
  // The last chunk's backward pass comes first.
  for (auto chunk = stage.chunks.rbegin(); chunk != stage.chunks.rend(); ++chunk) {
    chunk->first_bucket = stage.buckets.size();
    std::vector<Bucket> buckets = rule(chunk->layers);
    for (Bucket& bucket : buckets)
      for (int i = bucket.first_layer; !plan.expert_parameters.empty() && i <= bucket.last_layer; ++i)
        bucket.expert_parameters += plan.expert_parameters[static_cast<std::size_t>(i)];
    stage.buckets.insert(stage.buckets.end(), buckets.begin(), buckets.end());
    chunk->end_bucket = stage.buckets.size();
    stage.cut_last_backward = stage.cut_last_backward || (strategy.overlap && buckets.size() > 1);
  }
  stage.cut_first_forward = stage.cut_last_backward && traffic.receives_weights;
  stage.cut_every_forward = traffic.every_forward;
  stage.cut_every_backward = traffic.every_backward;
  stage.held = traffic.held;

  const StateBytes bytes = state_bytes(scenario.training.optimizer, scenario.training.precision,
                                       scenario.training.gradient_precision);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    const Bucket& bucket = stage.buckets[b];
    const auto tensor = [&](TensorKind kind, const char* name, Precision type, double per_parameter,
                            int shards) {
      if (bucket.parameters == 0) return -1;
      Tensor t;
      t.kind = kind;
      t.name = fmt::format("{} {}", name, b);
      t.first_layer = bucket.first_layer;
      t.last_layer = bucket.last_layer;
      t.type = type;
      t.shards = shards;
      t.bytes = kept_parameters(plan, bucket, shards) * per_parameter;
      return add_tensor(stage.program, std::move(t));
    };
    stage.weights.push_back(
        tensor(TensorKind::weight, "weights", scenario.training.precision, bytes.weight, stage.held.weights));
    stage.gradients.push_back(tensor(TensorKind::gradient, "gradients", scenario.training.gradient_precision,
                                     bytes.gradient, stage.held.gradients));
  }
  if (scenario.framework.whole_gradients && strategy.pipeline > 1 && stage.held.gradients > 1) {
    Tensor t;
    t.kind = TensorKind::gradient;
    t.name = "whole gradients";
    t.kept = true;
    t.type = scenario.training.gradient_precision;
    t.bytes = stage.parameters() * bytes.gradient;
    add_tensor(stage.program, std::move(t));
  }
  if (const double most = scenario.framework.bucket_buffer_bytes.value;
      most > 0 && gradient_ranks(plan) > 1) {
    Tensor t;
    t.kind = TensorKind::buffer;
    t.name = "buffers of buckets";
    t.kept = true;
    t.bytes = std::min(most, stage.parameters() * element_bytes(scenario.training.precision));
    add_tensor(stage.program, std::move(t));
  }
  if (const double copies = scenario.framework.gradient_copy_bytes.value;
      copies > 0 && gradient_ranks(plan) > 1 && stage.held.gradients == 1) {
    Tensor t;
    t.kind = TensorKind::gradient;
    t.name = "gradients in buckets";
    t.first_layer = stage.layers.first;
    t.last_layer = stage.layers.last;
    t.type = scenario.training.precision;
    t.bytes = copies * stage.parameters();
    add_tensor(stage.program, std::move(t));
  }
  return stage;
}

void end_stage(StepPlan& plan, StageProgram& stage) {
  const bool optimizer = std::any_of(stage.program.ops.begin(), stage.program.ops.end(),
                                     [](const Op& op) { return op.pass == Pass::optimizer; });
  if (optimizer || stage.sends.empty()) return;
  Op end = marker(plan, stage, "end step");
  for (int send : stage.sends) end.after.push_back({send});
  add_op(stage.program, std::move(end));
}

}  // namespace rehearse
