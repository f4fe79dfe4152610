#include "simulator/costs/framework.hpp"

#include <algorithm>

namespace rehearse {

Framework read_framework(Section& section, const std::string& name) {
  Framework framework;
  framework.title = section.text("title", name.empty() && section.present() ? "own" : name);
  framework.name = name.empty() ? framework.title : name;
  framework.kernel_launch_s = read_sourced(section, "kernel_launch_us", {0, 1e6}, 1e-6);
  framework.collective_launch_s = read_sourced(section, "collective_launch_us", {0, 1e6}, 1e-6);
  framework.step_s = read_sourced(section, "step_ms", {0, 1e6}, 1e-3);
  framework.accumulation_bytes = read_sourced(section, "accumulation_bytes_per_parameter", {0, 1e4}, 1);
  framework.loss_bytes = read_sourced(section, "loss_bytes_per_logit", {0, 1e4}, 1);
  framework.message_stall = read_sourced(section, "message_stall_share", {0, 100}, 1);
  framework.synchronous_p2p = section.boolean("synchronous_p2p", false);
  framework.norm_bytes = read_sourced(section, "norm_bytes_per_element", {0, 1e4}, 1);
  framework.rotary_bytes = read_sourced(section, "rotary_bytes_per_element", {0, 1e4}, 1);
  framework.gate_bytes = read_sourced(section, "gate_bytes_per_element", {0, 1e4}, 1);
  framework.cast_bytes = read_sourced(section, "cast_bytes_per_element", {0, 1e4}, 1);
  framework.wide_logits = section.boolean("wide_logits", false);
  framework.expanded_keys = section.boolean("expanded_keys", false);
  framework.narrow_gathers = section.boolean("narrow_gathers", false);
  framework.autograd_checkpoints = section.boolean("autograd_checkpoints", false);
  section.expect({"attention"});
  if (section.has("attention"))
    framework.attention = static_cast<AttentionKernels>(section.choice("attention", kAttentionKernelsNames));
  framework.expert_launch_s = read_sourced(section, "expert_launch_us", {0, 1e6}, 1e-6);
  framework.routed_cast_bytes = read_sourced(section, "routed_cast_bytes_per_element", {0, 1e4}, 1);
  framework.expert_bias_bytes = read_sourced(section, "expert_bias_bytes_per_element", {0, 1e4}, 1);
  framework.sink_bytes = read_sourced(section, "sink_bytes_per_score", {0, 1e4}, 1);
  framework.fused_experts = section.boolean("fused_experts", false);
  framework.stashed_experts = section.boolean("stashed_experts", false);
  framework.graphs_hold_experts = section.boolean("graphs_hold_experts", false);
  framework.waits_for_rows = section.boolean("waits_for_rows", false);
  framework.sorts_received_rows = section.boolean("sorts_received_rows", false);
  framework.loss_peak_bytes = read_sourced(section, "loss_peak_bytes_per_logit", {0, 1e4}, 1);
  framework.norm_saved_bytes = read_sourced(section, "norm_saved_bytes_per_element", {0, 1e4}, 1);
  framework.gate_saved_bytes = read_sourced(section, "gate_saved_bytes_per_element", {0, 1e4}, 1);
  framework.weighted_activations = section.boolean("weighted_activations", false);
  framework.packed_queries = section.boolean("packed_queries", false);
  framework.gradient_copy_bytes = read_sourced(section, "gradient_copy_bytes_per_parameter", {0, 1e4}, 1);
  framework.engine_workspaces = static_cast<int>(section.integer("engine_workspaces", 0, 100, 0));
  framework.deterministic_products = section.boolean("deterministic_products", false);
  framework.records_streams = section.boolean("records_streams", false);
  framework.bucket_buffer_bytes = read_sourced(section, "bucket_buffers_gib", {0, 1e4}, 1073741824);
  framework.host_memory_factor = read_sourced(section, "host_memory_factor", {0, 1e3}, 1);
  framework.whole_gradients = section.boolean("whole_gradients", false);
  framework.gather_copies = section.boolean("gather_copies", false);
  framework.held_gather_buffers = section.boolean("held_gather_buffers", false);
  section.finish();
  return framework;
}

FrameworkKernels Framework::kernels() const {
  FrameworkKernels kernels{norm_bytes.value, rotary_bytes.value, gate_bytes.value,    cast_bytes.value,
                           wide_logits,      expanded_keys,      autograd_checkpoints};
  kernels.routed_cast_bytes = routed_cast_bytes.value;
  kernels.expert_bias_bytes = expert_bias_bytes.value;
  kernels.sink_bytes = sink_bytes.value;
  kernels.fused_experts = fused_experts;
  kernels.stashed_experts = stashed_experts;
  kernels.loss_peak_bytes = loss_peak_bytes.value;
  kernels.norm_saved_bytes = norm_saved_bytes.value;
  kernels.gate_saved_bytes = gate_saved_bytes.value;
  kernels.packed_queries = packed_queries;
  kernels.weighted_activations = weighted_activations;
  return kernels;
}

HostLaunches host_launches(const Framework& framework, bool cuda_graphs, bool blocking) {
  const bool held = cuda_graphs && framework.graphs_hold_experts;
  return {cuda_graphs ? 0 : framework.kernel_launch_s.value,
          framework.collective_launch_s.value,
          framework.step_s.value,
          framework.synchronous_p2p,
          blocking,
          cuda_graphs && !held ? framework.kernel_launch_s.value : 0,
          held ? 0 : framework.expert_launch_s.value,
          framework.waits_for_rows && !held,
          framework.message_stall.value};
}

double launch_time_s(const HostLaunches& launches, const Work& work) {
  double time_s = launches.kernel_s * launched_kernels(work);
  for (const Kernel& kernel : work.kernels)
    if (kernel.routed)
      time_s += kernel.count *
                (launches.routed_kernel_s +
                 (kernel.kind == Kernel::Kind::gemm ? kernel.launches * launches.expert_product_s : 0));
  return time_s;
}

bool waits_for_rows(const HostLaunches& launches, const Work& work) {
  return launches.waits_for_rows &&
         std::any_of(work.kernels.begin(), work.kernels.end(),
                     [](const Kernel& kernel) { return kernel.routed && kernel.kind == Kernel::Kind::gemm; });
}

double launched_kernels(const Work& work) {
  double count = work.parameters_updated > 0 ? 1 : 0;
  for (const Kernel& kernel : work.kernels)
    count += kernel.count * (kernel.kind == Kernel::Kind::fixed ? kernel.launches : 1);
  return count;
}

}  // namespace rehearse
