// Computes how long kernels take on a device.
#pragma once

#include <array>
#include <string_view>

#include "simulator/costs/product.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Returns the precision in which a device runs kernels of this kind when training in `precision`: fp32 if the
// device has no units for the format. In fp8, mxfp8 and nvfp4 only matrix products run; other kernels run in
// bf16.
Precision computed_in(const Device& device, Kernel::Kind kind, Precision precision);

// What determines a kernel's time: arithmetic, memory traffic, the gap between two kernels, or a measurement.
enum class Bound { compute, memory, overhead, measured };
inline constexpr std::array<std::string_view, 4> kBoundNames = {"compute", "memory", "overhead", "measured"};

// A kernel's time and its components, in seconds.
struct KernelTime {
  double seconds = 0;  // of all `count` executions
  // Of one execution: arithmetic and memory traffic, of which the longer one counts (their sum for Winograd's
  // algorithm), the overhead, and the total.
  double arithmetic_s = 0, memory_s = 0, overhead_s = 0, one_s = 0;
  Bound bound = Bound::memory;
  ProductTime product;    // matrix products and convolutions
  bool winograd = false;  // a convolution that uses Winograd's algorithm
  double correction = 1;  // the factor by which similar measured kernels have corrected the total
};

// Computes the time of a kernel. For matrix products it is max(FLOPs over the reached peak, bytes over the
// reached memory bandwidth) plus the overhead; compute.cpp and product.cpp cite the source of each term. If
// the device has measured kernels, they correct it (measured_ratio.hpp).
KernelTime kernel_time(const Kernel& kernel, const Device& device, Precision precision);

// Returns the share of the device's peak (of its memory bandwidth, for kernels without products) that
// kernel_time() assumes for the kernel. The reference points into `device`.
const Sourced& reached_share(const Device& device, const Kernel& kernel, Precision precision,
                             bool winograd = false);

// Returns kernel_time().seconds.
double kernel_time_s(const Kernel& kernel, const Device& device, Precision precision);

// Returns how long a device waits in a work item, as a profile measured it: for its process, and for data.
double process_wait_s(const Work& work);
double data_wait_s(const Work& work);

// Returns the seconds of a work item: its kernels, the waits between them, and its optimizer update. `speed`
// is the speed factor of the device's kernels (1: as specified). An update moves Work::optimizer_bytes
// through memory. If the device states how many bytes per parameter mixed-precision Adam really moves, the
// bytes are scaled by the ratio of that figure to Adam's counted bytes; on processors, only those of Adam.
double work_time_s(const Work& work, const Device& device, double speed = 1);

// Returns the device that computes at an endpoint; a node's processor is all of its cores taken together.
Device device_at(const Cluster& cluster, Endpoint endpoint);

}  // namespace rehearse
