// Measures one training step of a trace: its passes, their layers, and the time of each.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/profiler/idle_causes.hpp"

namespace rehearse {

// Times of a layer, in microseconds, summed over the passes of the step.
struct MeasuredLayer {
  std::uint32_t head = 0;  // event of its first operator
  double forward = 0, backward = 0;
  double forward_idle = 0, backward_idle = 0;  // before kernels of the layer, without loading data
  double parameters = 0, gradient_bytes = 0;
  double forward_kernels = 0, backward_kernels = 0;
  double output_bytes = 0;
};

struct MeasuredStep {
  std::vector<MeasuredLayer> layers;
  std::vector<int> ready;  // layers in the order of their last gradients
  int passes = 0;
  double micro_batch = 0, element_bytes = 0;
  double step = 0, optimizer = 0, communication = 0, other = 0, idle = 0, between = 0, collective = 0;
  // Idle time without loading data: in the update, and before kernels outside of layers. `idle` also has that
  // of the layers, `between`, and `data`, the time for loading data, of which `between_data` is part of
  // `between`.
  double optimizer_idle = 0, other_idle = 0, data = 0, between_data = 0;
  IdleSums idle_causes;
  double optimizer_kernels = 0;
  double issued_kernels = 0, issuing = 0;  // kernels the host issues in passes and update; time it takes
  bool momentum = false;
  std::uint32_t optimizer_name = 0;  // index of the annotation's name
};

// The data from which all steps of a trace are measured.
struct StepSource {
  explicit StepSource(const ProfilerTrace& its_trace);
  const ProfilerTrace& trace;
  HostOps ops;
  HostActivity host;
  std::vector<PlacedKernel> kernels;  // by the time of their launches
  bool on_device = false;             // times are those of kernels: operators launched some
  std::vector<Interval> waits;        // during which the host waits for the GPU
  std::uint32_t main_thread = 0;      // the thread that runs the steps
  std::vector<Interval> windows;      // the steps, one after the other
  bool told_by_updates = false;
};

// Measures the step of a window. The result has passes = 0 if there is no forward and backward pass; passes
// that differ have as many layers as the first. On a GPU, the step ends where the next one begins: a step
// without a successor has step = 0.
MeasuredStep measure_step(const StepSource& source, std::size_t window);

}  // namespace rehearse
