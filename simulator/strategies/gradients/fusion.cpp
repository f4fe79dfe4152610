#include "simulator/strategies/gradients/fusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/costs/compute.hpp"

namespace rehearse {
namespace {

double tick_after(double ready_s, double cycle_s) {
  if (cycle_s <= 0) return ready_s;
  // The tolerance lets a tick take gradients that are ready at it except for rounding.
  return std::max(1.0, std::ceil(ready_s / cycle_s * (1 - 1e-12))) * cycle_s;
}

double backward_s(const LayerCost& layer, const Device& device, Precision precision) {
  double seconds = 0;
  for (const auto* pass : {&layer.recompute, &layer.backward_input, &layer.backward_weight})
    for (const Kernel& kernel : *pass) seconds += kernel_time_s(kernel, device, precision);
  return seconds;
}

}  // namespace

std::vector<FusedTensors> fuse(const std::vector<ReadyTensor>& tensors, const FusionBuffer& buffer) {
  std::vector<FusedTensors> fused;
  double bytes = 0;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    const double tick_s = tick_after(tensors[i].ready_s, buffer.cycle_s);
    if (fused.empty() || fused.back().tick_s != tick_s || bytes + tensors[i].bytes > buffer.bytes) {
      fused.push_back({i, i, tick_s});
      bytes = 0;
    }
    fused.back().last = i;
    bytes += tensors[i].bytes;
  }
  return fused;
}

// Horovod sends a tensor once every rank has it, so ready times are those of the slowest device.
FusedBuckets fused_buckets(const StepPlan& plan, const LayerRange& layers, const FusionBuffer& buffer) {
  const Training& training = plan.scenario.training;
  std::vector<ReadyTensor> tensors;
  std::vector<int> layer_of_tensor;
  const Cluster& cluster = *plan.scenario.cluster;
  double speed = cluster.device_factor(plan.endpoints.front());
  for (const int endpoint : plan.endpoints) speed = std::min(speed, cluster.device_factor(endpoint));
  double now_s = 0;
  for (int i = layers.last; i >= layers.first; --i) {
    const LayerCost& layer = plan.layers[i];
    now_s += backward_s(layer, cluster.node().device, training.precision) / speed;
    if (layer.parameters == 0) continue;
    tensors.push_back({layer.parameters * element_bytes(training.gradient_precision), now_s});
    layer_of_tensor.push_back(i);
  }
  FusedBuckets result;
  int last_layer = layers.last;
  for (const FusedTensors& group : fuse(tensors, buffer)) {
    Bucket bucket{layer_of_tensor[group.last], last_layer, 0};
    for (int t = group.first; t <= group.last; ++t)
      bucket.parameters += plan.layers[layer_of_tensor[t]].parameters;
    last_layer = bucket.first_layer - 1;
    result.buckets.push_back(bucket);
    result.tick_s.push_back(group.tick_s);
    result.tensors.push_back(group.last - group.first + 1);
  }
  if (last_layer >= layers.first) {  // these layers are computed, but nothing is sent
    result.buckets.push_back({layers.first, last_layer, 0});
    result.tick_s.push_back(0);
    result.tensors.push_back(0);
  }
  return result;
}

std::vector<Bucket> append(FusedBuckets& all, const FusedBuckets& chunk) {
  all.buckets.insert(all.buckets.end(), chunk.buckets.begin(), chunk.buckets.end());
  all.tick_s.insert(all.tick_s.end(), chunk.tick_s.begin(), chunk.tick_s.end());
  all.tensors.insert(all.tensors.end(), chunk.tensors.begin(), chunk.tensors.end());
  return chunk.buckets;
}

void write_cycles(StageProgram& stage, const FusedBuckets& fused, const Chunk& chunk, int begin,
                  std::vector<int>& wakings) {
  double now_s = 0;
  int last = -1;
  for (std::size_t b = chunk.first_bucket; b < chunk.end_bucket; ++b) {
    if (fused.tick_s[b] > now_s) {
      Op sleep;
      sleep.name = fmt::format("cycle until {:.3f} ms", 1e3 * fused.tick_s[b]);
      sleep.kind = OpKind::host;
      sleep.host_action = HostAction::sleep;
      sleep.stream = stream_named(stage.program, "fusion cycle");
      sleep.pass = Pass::gradient_sync;
      sleep.purpose = Purpose::fusion_cycle;
      sleep.seconds = fused.tick_s[b] - now_s;
      sleep.after = {{begin}};
      last = add_op(stage.program, std::move(sleep));
      now_s = fused.tick_s[b];
    }
    wakings[b] = last;
  }
}

void write_copy(StepPlan& plan, StageProgram& stage, const FusedBuckets& fused, std::size_t bucket,
                const char* way, double bytes, std::vector<Dependency> after) {
  if (fused.tensors[bucket] < 2) return;
  Work work;
  work.name = fmt::format("copy bucket {} {} the fusion buffer", bucket, way);
  work.precision = plan.scenario.training.gradient_precision;
  work.kernels = {memory_kernel(2 * bytes)};  // reads and writes all bytes
  Op copy = compute_op(plan, stage.program, work.name, Pass::gradient_sync, work);
  copy.stream = stream_named(stage.program, "gradients");
  copy.first_layer = fused.buckets[bucket].first_layer;
  copy.last_layer = fused.buckets[bucket].last_layer;
  copy.after = std::move(after);
  copy.reads = copy.writes = {stage.gradients[bucket]};
  add_op(stage.program, std::move(copy));
}

}  // namespace rehearse
