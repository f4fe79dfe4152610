#include "simulator/costs/compute.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/costs/measured_ratio.hpp"
#include "simulator/costs/memory.hpp"

namespace rehearse {
namespace {

double fraction(const Sourced& share) {
  return share.value > 0 ? share.value : 1;
}

double memory_time_s(double bytes, const Device& device) {
  if (bytes <= 0) return 0;
  return bytes / (device.memory_bandwidth.value * fraction(device.memory_efficiency));
}

bool on_tensor_cores(const Device& device, Precision precision) {
  return device.compute_capability >= 70 && precision != Precision::fp32;
}

// Returns whether every row of the operands of an unfused attention product begins at a multiple of 16 bytes,
// as tensor cores require (NVIDIA, "Matrix Multiplication Background User's Guide", section 4.1). A model
// with a hidden size of 13,824 took 118 s per step with 96 heads of 144 elements, and 157 s with 128 heads of
// 108 (bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md, "Another round of NHEADS").
// Single products are not affected: DeepBench's products with a side of 5,124 keep their rate.
bool aligned(const Kernel& kernel, Precision precision) {
  const double numbers = 16 / element_bytes(stored_precision(precision));
  return std::fmod(kernel.n, numbers) == 0 && std::fmod(kernel.k, numbers) == 0;
}

// Returns the faster of an implicit product and Winograd's algorithm, whose transforms are separate kernels,
// as libraries do that try all their algorithms first. Tensor cores and processors always use implicit
// products.
KernelTime convolution_time(const Kernel& kernel, const Device& device, double peak, Precision precision) {
  KernelTime implicit;
  implicit.product =
      product_time({kernel.m, kernel.n, kernel.k, kernel.batch},
                   {peak * fraction(device.convolution_efficiency_of(precision)), false, true}, device);
  implicit.arithmetic_s = implicit.product.seconds;
  implicit.memory_s = memory_time_s(kernel.bytes, device);
  implicit.one_s = std::max(implicit.arithmetic_s, implicit.memory_s);
  const Kernel::Winograd& w = kernel.winograd;
  if (w.batch <= 0 || device.compute_capability == 0 || on_tensor_cores(device, precision)) return implicit;
  KernelTime winograd;
  winograd.winograd = true;
  winograd.product = product_time(
      {w.m, w.n, w.k, w.batch}, {peak * fraction(device.gemm_efficiency_of(precision)), false, true}, device);
  winograd.arithmetic_s = winograd.product.seconds;
  winograd.memory_s = memory_time_s(w.bytes, device);
  winograd.one_s = winograd.arithmetic_s + winograd.memory_s;
  return winograd.one_s < implicit.one_s ? winograd : implicit;
}

double optimizer_time_s(const Work& work, const Device& device) {
  const double measured = device.optimizer_bytes_per_parameter.value;
  double bytes = work.optimizer_bytes;
  const double of_adam =
      work.parameters_updated * update_bytes(Optimizer::adam, work.precision, work.precision);
  if (work.parameters_updated > 0 && measured > 0) {
    // The device's figure was measured with mixed-precision Adam. On GPUs, the traffic beyond the counted
    // bytes comes from unfused kernels, so it is scaled in proportion for other optimizers. On processors,
    // the excess is the time of Adam's arithmetic, a root and two divisions per parameter. The other
    // optimizers do not have it: they move only the counted bytes.
    static const double counted = update_bytes(Optimizer::adam, Precision::bf16, Precision::bf16);
    const bool is_adam = bytes <= 0 || bytes >= of_adam;
    if (is_adam || device.compute_capability > 0)
      bytes = bytes > 0 ? bytes * measured / counted : work.parameters_updated * measured;
  }
  if (!device.measured || bytes <= 0) return memory_time_s(bytes, device);
  // States that caches hold are updated faster. Measured kernels tell: those of Adam, and copies for the
  // others.
  Kernel update;
  update.bytes = work.optimizer_bytes > 0 ? work.optimizer_bytes : of_adam;
  if (update.bytes >= of_adam) update.form = MemoryForm::adam_update;
  return memory_time_s(bytes, device) * measured_ratio(update, device, work.precision);
}

double waited_s(const Work& work, double Kernel::*wait_s) {
  double seconds = 0;
  for (const Kernel& kernel : work.kernels) seconds += kernel.count * kernel.*wait_s;
  return seconds;
}

Precision computed_in(const Device& device, const Kernel& kernel, Precision precision) {
  const Precision used =
      computed_in(device, kernel.kind, kernel.wide ? stored_precision(precision) : precision);
  const bool misaligned =
      kernel.kind == Kernel::Kind::attention && on_tensor_cores(device, used) && !aligned(kernel, used);
  return misaligned ? Precision::fp32 : used;
}

}  // namespace

Precision computed_in(const Device& device, Kernel::Kind kind, Precision precision) {
  const Precision wanted =
      kind != Kernel::Kind::gemm && casts_operands(precision) ? stored_precision(precision) : precision;
  return device.peak_flops[static_cast<std::size_t>(wanted)].value > 0 ? wanted : Precision::fp32;
}

const Sourced& reached_share(const Device& device, const Kernel& kernel, Precision precision, bool winograd) {
  const Precision used = computed_in(device, kernel, precision);
  switch (kernel.kind) {
    case Kernel::Kind::gemm:
      return device.gemm_efficiency_of(used);
    case Kernel::Kind::convolution:
      return winograd ? device.gemm_efficiency_of(used) : device.convolution_efficiency_of(used);
    case Kernel::Kind::attention:
      return device.attention_efficiency;
    case Kernel::Kind::fused_attention: {
      const FusedAttentionShares& shares = device.fused_attention[static_cast<std::size_t>(kernel.fused)];
      return kernel.backward ? shares.backward : shares.forward;
    }
    case Kernel::Kind::memory:
    case Kernel::Kind::fixed:
      break;
  }
  return device.memory_efficiency;
}

KernelTime kernel_time(const Kernel& kernel, const Device& device, Precision precision) {
  KernelTime time;
  if (kernel.kind == Kernel::Kind::fixed) {
    time.bound = Bound::measured;
    time.one_s = kernel.seconds + kernel.wait_s + kernel.data_wait_s;
    time.seconds = time.one_s * kernel.count;
    return time;
  }
  const Precision used = computed_in(device, kernel, precision);
  const double peak = device.peak_flops[static_cast<std::size_t>(used)].value;
  const double rate = peak * fraction(reached_share(device, kernel, precision));
  if (kernel.kind == Kernel::Kind::convolution) {
    time = convolution_time(kernel, device, peak, used);
  } else {
    if (kernel.kind == Kernel::Kind::gemm) {
      time.product = product_time({kernel.m, kernel.n, kernel.k, kernel.batch},
                                  {rate, on_tensor_cores(device, used)}, device);
      time.arithmetic_s = time.product.seconds;
    } else if (kernel.kind == Kernel::Kind::attention || kernel.kind == Kernel::Kind::fused_attention) {
      time.arithmetic_s = 2 * kernel.m * kernel.n * kernel.k * kernel.batch / (rate * device.free_share());
    }
    // Operands stream in while products are computed, so the slower of the two determines the time (the
    // roofline: Williams, Waterman, Patterson 2009).
    time.memory_s = memory_time_s(kernel.bytes, device);
    time.one_s = std::max(time.arithmetic_s, time.memory_s);
  }
  time.overhead_s = device.kernel_overhead_s.value;
  time.bound = time.arithmetic_s >= time.memory_s ? Bound::compute : Bound::memory;
  if (time.overhead_s > time.one_s) time.bound = Bound::overhead;
  time.correction = measured_ratio(kernel, device, used);
  time.one_s = time.correction * (time.one_s + time.overhead_s);
  time.seconds = kernel.count * time.one_s;
  return time;
}

double kernel_time_s(const Kernel& kernel, const Device& device, Precision precision) {
  return kernel_time(kernel, device, precision).seconds;
}

double process_wait_s(const Work& work) {
  return waited_s(work, &Kernel::wait_s);
}

double data_wait_s(const Work& work) {
  return waited_s(work, &Kernel::data_wait_s);
}

double work_time_s(const Work& work, const Device& device, double speed) {
  double seconds = optimizer_time_s(work, device);
  for (const Kernel& kernel : work.kernels) seconds += kernel_time_s(kernel, device, work.precision);
  const double waits_s = process_wait_s(work) + data_wait_s(work);
  return (seconds - waits_s) / speed + waits_s;
}

Device device_at(const Cluster& cluster, Endpoint endpoint) {
  if (endpoint < cluster.devices()) return cluster.device_of_node(cluster.node_of(endpoint));
  Device device = device_preset("cpu-core");
  for (Sourced& peak : device.peak_flops) peak.value *= cluster.node().cpu_cores;
  const double given = cluster.node().cpu_memory_bandwidth;
  device.memory_bandwidth.value =
      given > 0 ? given : device.memory_bandwidth.value * cluster.node().cpu_cores;
  return device;
}

}  // namespace rehearse
