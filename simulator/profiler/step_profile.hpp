// What a trace of PyTorch's profiler says of one training step: layers, update, and what else it takes.
#pragma once

#include <string>
#include <vector>

#include "simulator/profiler/profiler_trace.hpp"

namespace rehearse {

// Operators from one that uses parameters up to the next such. Times are medians over the steps, a mean over
// the passes of each.
struct ProfiledLayer {
  std::string name;  // of the nn.Module where the trace has modules, else of the operator
  double forward_s = 0, backward_s = 0;
  double parameters = 0;      // elements; 0 without record_shapes
  double gradient_bytes = 0;  // of these
  double output_bytes = 0;    // handed to the next layer: the first input of its first operator; 0: not told
  double forward_kernels = 0, backward_kernels = 0;  // on a GPU
};

struct StepProfile {
  std::string file, gpu;
  bool on_gpu = false;           // times of layers and of the update are those of kernels
  bool told_by_updates = false;  // there are no ProfilerStep annotations: steps end where updates end
  int steps_found = 0, steps_used = 0;
  int passes = 1;                     // forward and backward passes of a step: micro-batches
  double micro_batch = 0;             // samples: first dimension of the first layer's input; 0: not told
  double element_bytes = 0;           // of gradients; 0: not told
  bool has_shapes = false;            // parameters are known
  std::vector<ProfiledLayer> layers;  // in order of the forward pass
  std::vector<int>
      gradients_ready;  // numbers of layers with parameters, in the order of their last gradients

  // A step and what it consists of, in seconds. `other_s`: on the host what is neither of these; on a GPU
  // kernels of no layer (copies of the batch, clipping of gradients).
  double step_s = 0, least_step_s = 0, most_step_s = 0;
  double optimizer_s = 0, communication_s = 0, other_s = 0;
  double idle_s = 0;           // of the GPU, in all
  double between_steps_s = 0;  // of these, between the last kernel of a step and the first of the next
  double layers_s() const;     // of all passes
  double sum_s() const { return layers_s() + optimizer_s + communication_s + other_s + idle_s; }

  std::string optimizer;  // "Adam"; empty: the trace has no update
  bool momentum = false;  // SGD that multiplies a buffer
  double optimizer_kernels = 0;
  double kernel_launch_s = 0;  // of the host for each kernel, while nothing holds it up; 0: not told
  double collective_s = 0;     // under way, hidden or not
  std::string communication;   // backend; empty: none
  int ranks = 1;
};

// InputError, which names the file: no steps, steps without forward and backward passes, or steps that differ
// so that no two have the same layers.
StepProfile profile_steps(const ProfilerTrace& trace);

}  // namespace rehearse
