#include "simulator/costs/framework.hpp"

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
  section.finish();
  return framework;
}

FrameworkKernels Framework::kernels() const {
  return {norm_bytes.value, rotary_bytes.value, gate_bytes.value,    cast_bytes.value,
          wide_logits,      expanded_keys,      autograd_checkpoints};
}

HostLaunches host_launches(const Framework& framework, bool cuda_graphs, bool blocking) {
  return {cuda_graphs ? 0 : framework.kernel_launch_s.value, framework.collective_launch_s.value,
          framework.step_s.value, framework.synchronous_p2p, blocking};
}

double launched_kernels(const Work& work) {
  double count = work.parameters_updated > 0 ? 1 : 0;
  for (const Kernel& kernel : work.kernels)
    count += kernel.count * (kernel.kind == Kernel::Kind::fixed ? kernel.launches : 1);
  return count;
}

}  // namespace rehearse
