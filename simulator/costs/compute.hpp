// How long kernels take on a device.
#pragma once

#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// The precision in which a device runs kernels of this kind when training in `precision`. Without units for
// the format it is fp32. In fp8, mxfp8 and nvfp4 only matrix products run; other kernels run in bf16.
Precision computed_in(const Device& device, Kernel::Kind kind, Precision precision);

// Seconds of one kernel (all `count` of it). Matrix products: max(FLOPs over the reached peak, bytes over the
// reached memory bandwidth); the source of each term stands in compute.cpp.
double kernel_time_s(const Kernel& kernel, const Device& device, Precision precision);

// Seconds of a work item: its kernels and its optimizer update. `speed` is the device's factor (1: as
// specified). An update moves Work::optimizer_bytes through memory; where the device says what
// mixed-precision Adam really moves per parameter, as many times more (or less) as that exceeds its counted
// bytes.
double work_time_s(const Work& work, const Device& device, double speed = 1);

// The device that computes at an endpoint: a node's processor is its cores taken together.
Device device_at(const Cluster& cluster, Endpoint endpoint);

}  // namespace rehearse
