#include "simulator/strategies/stage_program.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace rehearse
