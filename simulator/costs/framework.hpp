// Models what a training framework costs in addition to the model's own kernels: the time that its process
// needs to issue them, and kernels that a leaner implementation would not run.
#pragma once

#include <optional>
#include <string>

#include "models/model.hpp"
#include "models/text/document.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// Launch costs, in seconds, of the process that feeds a GPU. The process issues its ops in program order and
// runs ahead of the device. A kernel cannot begin before it has been issued.
struct HostLaunches {
  double kernel_s = 0;              // per kernel
  double collective_s = 0;          // per collective or exchange of messages
  double step_s = 0;                // once per step, while the device is idle
  bool waits_for_messages = false;  // between pipeline stages: the process waits until they have arrived
  // Every launch waits until its kernel has ended (CUDA_LAUNCH_BLOCKING=1): the process never runs ahead, so
  // its time adds to the device's.
  bool blocking = false;
  double routed_kernel_s = 0;   // additional, per kernel on rows that a router sent to experts
  double expert_product_s = 0;  // additional, per product of a single expert
  // In forward passes, the process waits until rows have arrived at the experts: it needs their number to
  // issue the products.
  bool waits_for_rows = false;
  // Share of its launch time by which each process is held up while messages between pipeline stages cross
  // the network. Ranks that meet in collectives wait for each other, so it counts once for each tensor rank.
  double message_stall = 0;
  bool any() const {
    return kernel_s > 0 || collective_s > 0 || step_s > 0 || routed_kernel_s > 0 || expert_product_s > 0;
  }
};

// A named, dated set of costs; the presets are in simulator/frameworks/presets/.
struct Framework {
  std::string name;   // empty: no costs
  std::string title;  // "Megatron-LM, April 2021"
  Sourced kernel_launch_s, collective_launch_s, step_s;
  Sourced accumulation_bytes;                                // see PassShape::accumulation_bytes
  Sourced loss_bytes;                                        // see PassShape::loss_bytes
  Sourced norm_bytes, rotary_bytes, gate_bytes, cast_bytes;  // see FrameworkKernels
  Sourced message_stall;                                     // see HostLaunches
  bool synchronous_p2p = false;
  bool wide_logits = false, expanded_keys = false, autograd_checkpoints = false;  // see FrameworkKernels
  // Operands are cast to 8 bits before they are gathered: weights from their shards, and activations from the
  // sequence shards of the tensor-parallel ranks.
  bool narrow_gathers = false;
  std::optional<AttentionKernels> attention;  // what it ran; used if training.attention is not given
  // For mixtures of experts.
  Sourced expert_launch_s;                              // see HostLaunches::expert_product_s
  Sourced routed_cast_bytes, expert_bias_bytes;         // see FrameworkKernels
  Sourced sink_bytes;                                   // see FrameworkKernels
  bool fused_experts = false, stashed_experts = false;  // see FrameworkKernels
  bool graphs_hold_experts = false;                     // CUDA graphs contain the kernels on routed rows
  bool waits_for_rows = false;       // HostLaunches::waits_for_rows, unless graphs hold the experts
  bool sorts_received_rows = false;  // rows that arrive by all-to-all are copied into the experts' order
  // Memory; see FrameworkKernels for the first four.
  Sourced loss_peak_bytes, norm_saved_bytes, gate_saved_bytes;
  bool packed_queries = false, weighted_activations = false;
  // Bytes per parameter of the gradients that a backward pass computes, beside the sums that they are added
  // to. DistributedDataParallel keeps them in its buckets; otherwise they are gone after each pass.
  Sourced gradient_copy_bytes;
  int engine_workspaces = 0;  // of Transformer Engine's products: one, and four for those of single experts
  // Products whose sums are always in the same order, by CUBLAS_WORKSPACE_CONFIG=:4096:8.
  bool deterministic_products = false;
  // Tensors that a collective reads are held until the device has passed the collective: see
  // recorded_bytes().
  bool records_streams = false;
  Sourced bucket_buffer_bytes;  // buffers that a device keeps for buckets of gradients and weights, at most
  // Host memory of offloaded state, with copies and buffers, over that of the state itself; 0: 1.
  Sourced host_memory_factor;
  // Shards of weights with a pipeline: gradients are summed whole until the last micro-batch.
  bool whole_gradients = false;
  bool gather_copies = false;  // updated shards of weights are gathered into a buffer, and copied from there
  // Whether buffers that tensor-parallel ranks gather activations into stay allocated: one for inputs of
  // products and one for gradients of their results.
  bool held_gather_buffers = false;
  FrameworkKernels kernels() const;
};

// Parses [framework] and finishes the section. Each cost is a TOML table {value, basis, source}.
Framework read_framework(Section& section, const std::string& name);

// Returns the launch costs of a GPU's process. With `cuda_graphs`, launching kernels takes no time, except
// for those on routed rows that the graphs do not contain. With `blocking`, each launch waits until its
// kernel has ended.
HostLaunches host_launches(const Framework& framework, bool cuda_graphs, bool blocking);

// Returns the seconds that a process needs to issue the kernels of a work item.
double launch_time_s(const HostLaunches& launches, const Work& work);
// Returns whether the process waits for the rows that the work item reads before it issues the item's
// kernels, in a forward pass or in its recomputation.
bool waits_for_rows(const HostLaunches& launches, const Work& work);

// Returns the number of kernels of a work item, as its layers list them, plus one for an optimizer update.
// Kernels with measured times count the launches that they state.
double launched_kernels(const Work& work);

}  // namespace rehearse
