// Summarizes one training step of a PyTorch profiler trace: layers, update, and the rest of its time.
#pragma once

#include <string>
#include <vector>

#include "simulator/profiler/idle_causes.hpp"
#include "simulator/profiler/profiler_trace.hpp"

namespace rehearse {

// The operators from one that uses parameters up to the next one. Times are medians over the steps, each of
// which is the mean over its passes.
struct ProfiledLayer {
  std::string name;  // of the nn.Module if the trace has modules, else of the operator
  double forward_s = 0, backward_s = 0;
  double forward_idle_s = 0,
         backward_idle_s = 0;  // idle time of the GPU before its kernels, but for loading data
  double parameters = 0;       // elements; 0 without record_shapes
  double gradient_bytes = 0;   // of the parameters' gradients
  double output_bytes = 0;     // passed on: first input of the next layer's first operator; 0: unknown
  double forward_kernels = 0, backward_kernels = 0;  // on a GPU
};

// Idle time of the GPU for one cause, median over the steps, and the name that most of it has, if any.
struct ProfiledIdle {
  IdleCause cause = IdleCause::data;
  double seconds = 0;
  std::string name;
};

// How long the device of a schedule must wait, in seconds, beside the launches that
// framework.kernel_launch_us makes it wait for, so that a simulated step takes as long as the profiled one.
// Of one pass, by layer; for its data; and of the update.
struct ProfiledWaits {
  std::vector<double> forward_s, backward_s;
  double data_s = 0, optimizer_s = 0;
  double outside_s = 0;  // of a step: outside of passes and update
};

struct StepProfile {
  std::string file, gpu;         // gpu: name of the GPU or other accelerator
  std::string accelerator;       // kind of an accelerator that is no GPU of CUDA or HIP: "xpu"; else empty
  bool on_gpu = false;           // times of layers and of the update are those of kernels
  bool told_by_updates = false;  // there are no ProfilerStep annotations: steps end where updates end
  int steps_found = 0, steps_used = 0;
  int passes = 1;                     // forward and backward passes of a step: micro-batches
  double micro_batch = 0;             // samples: first dimension of the first layer's input; 0: unknown
  double element_bytes = 0;           // of gradients; 0: unknown
  bool has_shapes = false;            // parameters are known
  std::vector<ProfiledLayer> layers;  // in order of the forward pass
  std::vector<int>
      gradients_ready;  // indices of layers with parameters, in the order of their last gradients

  // A step and its parts, in seconds. `other_s`: on the host, time outside of all other parts; on a GPU,
  // kernels that belong to no layer (copies of the batch, gradient clipping).
  double step_s = 0, least_step_s = 0, most_step_s = 0;
  double optimizer_s = 0, communication_s = 0, other_s = 0;
  double idle_s = 0;           // idle time of the GPU, in total
  double between_steps_s = 0;  // the part of it between the last kernel of a step and the first of the next
  double optimizer_idle_s = 0, other_idle_s = 0;  // in the update, and before kernels of no layer; no data
  // Idle time while the process loads data, in total, and the part of it that is in `between_steps_s`.
  double data_s = 0, between_data_s = 0;
  std::vector<ProfiledIdle> idle_causes;  // the longest first
  bool on_processors() const { return !on_gpu && accelerator.empty(); }
  double layers_s() const;  // of all passes
  double sum_s() const { return layers_s() + optimizer_s + communication_s + other_s + idle_s; }

  std::string optimizer;  // "Adam"; empty: the trace has no update
  bool momentum = false;  // SGD that multiplies a buffer
  double optimizer_kernels = 0;
  double kernel_launch_s = 0;  // host time per kernel when nothing delays it; 0: unknown
  double collective_s = 0;     // time of collectives, hidden or not
  std::string communication;   // backend; empty: none
  int ranks = 1;
};

// Returns the waits that keep the profiled idle time in the step of a scenario.
ProfiledWaits waits_of(const StepProfile& profile);

// Measures the steps of a trace. Throws InputError, naming the file, if there are no steps, if they have no
// forward and backward passes, or if no two steps have the same layers.
StepProfile profile_steps(const ProfilerTrace& trace);

}  // namespace rehearse
