// How long kernels take on a device.
#pragma once

#include <array>
#include <string_view>

#include "simulator/costs/product.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// The precision in which a device runs kernels of this kind when training in `precision`. Without units for
// the format it is fp32. In fp8, mxfp8 and nvfp4 only matrix products run; other kernels run in bf16.
Precision computed_in(const Device& device, Kernel::Kind kind, Precision precision);

// What sets a kernel's time: arithmetic, memory traffic, the gap between two kernels, or that it was
// measured.
enum class Bound { compute, memory, overhead, measured };
inline constexpr std::array<std::string_view, 4> kBoundNames = {"compute", "memory", "overhead", "measured"};

// A kernel's time and what it consists of.
struct KernelTime {
  double seconds = 0;  // of all `count` of it
  // Of one: arithmetic and memory traffic, of which the longer one counts (both, if Winograd's algorithm was
  // chosen), and the overhead; their time together.
  double arithmetic_s = 0, memory_s = 0, overhead_s = 0, one_s = 0;
  Bound bound = Bound::memory;
  ProductTime product;    // of matrix products and convolutions
  bool winograd = false;  // a convolution by Winograd's algorithm
};

// Matrix products: max(FLOPs over the reached peak, bytes over the reached memory bandwidth) and the
// overhead; the source of each term stands in compute.cpp and product.cpp.
KernelTime kernel_time(const Kernel& kernel, const Device& device, Precision precision);

// The share of the device's peak (of its memory bandwidth, for kernels without products) that enters the
// kernel's time. It belongs to the device.
const Sourced& reached_share(const Device& device, const Kernel& kernel, Precision precision,
                             bool winograd = false);

// kernel_time().seconds.
double kernel_time_s(const Kernel& kernel, const Device& device, Precision precision);

// Seconds of a work item: its kernels and its optimizer update. `speed` is the device's factor (1: as
// specified). An update moves Work::optimizer_bytes through memory; where the device says what
// mixed-precision Adam really moves per parameter, as many times more (or less) as that exceeds its counted
// bytes; on processors that holds of Adam alone.
double work_time_s(const Work& work, const Device& device, double speed = 1);

// The device that computes at an endpoint: a node's processor is its cores taken together.
Device device_at(const Cluster& cluster, Endpoint endpoint);

}  // namespace rehearse
