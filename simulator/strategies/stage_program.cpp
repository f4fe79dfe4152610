#include "simulator/strategies/stage_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "simulator/costs/memory.hpp"

namespace rehearse {

double StageProgram::parameters() const {
  double sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.parameters;
  return sum;
}

int find_stream(const Program& program, const std::string& name) {
  const auto found = std::find(program.streams.begin(), program.streams.end(), name);
  return found == program.streams.end() ? -1 : static_cast<int>(found - program.streams.begin());
}

int stream_named(Program& program, const std::string& name) {
  if (const int found = find_stream(program, name); found >= 0) return found;
  program.streams.push_back(name);
  return static_cast<int>(program.streams.size()) - 1;
}

int add_tensor(Program& program, Tensor tensor) {
  program.tensors.push_back(std::move(tensor));
  return static_cast<int>(program.tensors.size()) - 1;
}

int add_op(Program& program, Op op) {
  program.ops.push_back(std::move(op));
  return static_cast<int>(program.ops.size()) - 1;
}

int last_op_of_stream(const Program& program, int stream) {
  if (stream < 0) return -1;
  for (int i = static_cast<int>(program.ops.size()) - 1; i >= 0; --i)
    if (program.ops[i].stream == stream) return i;
  return -1;
}

std::vector<At> at_stage(const StepPlan& plan, int stage) {
  if (plan.scenario.strategy.pipeline == 1) return {};
  return {{plan.pipeline_axis, stage, 0}};
}

double gradient_bytes(const StepPlan& plan, const Bucket& bucket) {
  return bucket.parameters * element_bytes(plan.scenario.training.gradient_precision);
}

std::string layers_text(const Bucket& bucket) {
  if (bucket.first_layer == bucket.last_layer) return fmt::format("layer {}", bucket.first_layer);
  return fmt::format("layers {}-{}", bucket.first_layer, bucket.last_layer);
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

// Every chunk is a model of its own to DistributedDataParallel, with its own buckets.
std::vector<Bucket> chunk_buckets(const StepPlan& plan, LayerRange layers, bool sends_gradients) {
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

  for (std::size_t part = number; part < plan.parts.size(); part += stage.stages)
    stage.chunks.push_back({plan.parts[part]});
  stage.layers = {stage.chunks.front().layers.first, stage.chunks.back().layers.last};
  // The last chunk's backward pass comes first.
  for (auto chunk = stage.chunks.rbegin(); chunk != stage.chunks.rend(); ++chunk) {
    chunk->first_bucket = stage.buckets.size();
    const std::vector<Bucket> buckets = rule(chunk->layers);
    stage.buckets.insert(stage.buckets.end(), buckets.begin(), buckets.end());
    chunk->end_bucket = stage.buckets.size();
    stage.cut_last_backward = stage.cut_last_backward || (strategy.overlap && buckets.size() > 1);
  }
  stage.cut_first_forward = stage.cut_last_backward && traffic.receives_weights;

  const StateBytes bytes = state_bytes(scenario.training.optimizer, scenario.training.precision,
                                       scenario.training.gradient_precision);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    const Bucket& bucket = stage.buckets[b];
    const auto tensor = [&](TensorKind kind, const char* name, Precision type, double per_parameter) {
      if (bucket.parameters == 0) return -1;
      Tensor t;
      t.kind = kind;
      t.name = fmt::format("{} {}", name, b);
      t.first_layer = bucket.first_layer;
      t.last_layer = bucket.last_layer;
      t.type = type;
      t.bytes = bucket.parameters * per_parameter;
      return add_tensor(stage.program, std::move(t));
    };
    stage.weights.push_back(tensor(TensorKind::weight, "weights", scenario.training.precision, bytes.weight));
    stage.gradients.push_back(
        tensor(TensorKind::gradient, "gradients", scenario.training.gradient_precision, bytes.gradient));
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
