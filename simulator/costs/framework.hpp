// What a training framework costs beside the model's own kernels: its process issues them, and it runs some
// kernels that a leaner implementation would not.
#pragma once

#include <optional>
#include <string>

#include "models/model.hpp"
#include "models/text/document.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// Each GPU is fed by one process, which issues its ops in the order of the program and runs ahead of the
// device. A kernel cannot begin before it was issued.
struct HostLaunches {
  double kernel_s = 0;              // of the process, for each kernel
  double collective_s = 0;          // for each collective or exchange of messages
  double step_s = 0;                // once a step, when the device is idle
  bool waits_for_messages = false;  // between pipeline stages: the process goes on when they have arrived
  // Every launch waits until its kernel has ended (CUDA_LAUNCH_BLOCKING=1): the process never runs ahead, so
  // its time adds to the device's.
  bool blocking = false;
  double routed_kernel_s = 0;   // more, for each kernel on rows that a router sent to experts
  double expert_product_s = 0;  // more, for each product of a single expert
  // Forward, the process waits until rows have come to the experts, whose products it issues by their number.
  bool waits_for_rows = false;
  bool any() const {
    return kernel_s > 0 || collective_s > 0 || step_s > 0 || routed_kernel_s > 0 || expert_product_s > 0;
  }
};

// A named set of costs, dated: simulator/frameworks/presets/.
struct Framework {
  std::string name;   // empty: none of these costs
  std::string title;  // "Megatron-LM, April 2021"
  Sourced kernel_launch_s, collective_launch_s, step_s;
  Sourced accumulation_bytes;                                // PassShape::accumulation_bytes
  Sourced loss_bytes;                                        // PassShape::loss_bytes
  Sourced norm_bytes, rotary_bytes, gate_bytes, cast_bytes;  // FrameworkKernels
  bool synchronous_p2p = false;
  bool wide_logits = false, expanded_keys = false, autograd_checkpoints = false;  // FrameworkKernels
  // Operands are cast to 8 bits before they are gathered: weights from their shards, and activations from the
  // sequence shards of the tensor ranks.
  bool narrow_gathers = false;
  std::optional<AttentionKernels> attention;  // that it ran, where training.attention is not given
  // Of mixtures of experts.
  Sourced expert_launch_s;                              // HostLaunches::expert_product_s
  Sourced routed_cast_bytes;                            // FrameworkKernels
  bool fused_experts = false, stashed_experts = false;  // FrameworkKernels
  bool graphs_hold_experts = false;                     // CUDA graphs contain the kernels on routed rows
  bool waits_for_rows = false;                          // HostLaunches, unless graphs hold the experts
  bool sorts_received_rows = false;  // rows that arrive by all-to-all are copied into the experts' order
  FrameworkKernels kernels() const;
};

// Parses [framework]; finishes the section. The costs are tables {value, basis, source}.
Framework read_framework(Section& section, const std::string& name);

// The launch costs of a GPU's process. With `cuda_graphs`, launching kernels takes no time; with `blocking`,
// each launch waits until its kernel has ended.
HostLaunches host_launches(const Framework& framework, bool cuda_graphs, bool blocking);

// What a process takes to issue the kernels of a work item.
double launch_time_s(const HostLaunches& launches, const Work& work);
// Whether the process waits for the rows that the work item reads before it issues its kernels, in a forward
// pass or one that is repeated.
bool waits_for_rows(const HostLaunches& launches, const Work& work);

// Kernels of a work item, as its layers list them; measured times count the launches
// that they say.
double launched_kernels(const Work& work);

}  // namespace rehearse
