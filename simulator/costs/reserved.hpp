// Estimates the memory of a GPU that is used outside the tensors of a schedule, by CUDA, NCCL and cuBLAS.
#pragma once

#include "simulator/costs/framework.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Estimated bytes. All are 0 on devices that are not GPUs.
struct ReservedBytes {
  double context = 0;        // CUDA's context and the kernels that it has loaded
  double communication = 0;  // buffers of NCCL's connections, if all collectives go around rings
  // The same as measured of communicators whose ranks are also connected pair by pair.
  double most_communication = 0;
  double workspaces = 0;  // of cuBLAS and Transformer Engine, which PyTorch's allocator hands out
  double driver = 0;      // what the driver keeps of the device's memory
  double total() const { return context + communication + workspaces + driver; }
};

// The share of a device's memory that should stay free for what the allocator cannot use.
inline constexpr double kMemoryMargin = 0.05;

// Memory that PyTorch's allocator reserves for tensors and workspaces of `allocated` bytes, as an interval.
struct AllocatorBytes {
  double allocated = 0, low = 0, expected = 0, high = 0;
};
// `recorded`: what recorded_bytes() returns; `waits`: the process waits for messages between pipeline stages,
// so that it does not run ahead of the device; `capacity`: of the device; 0: not known.
AllocatorBytes allocator_bytes(double allocated, double recorded, bool waits, double capacity = 0);

// Returns what a device must have for tensors of `tensors` bytes to fit for certain: with the most that the
// allocator wastes, CUDA's context and NCCL's buffers. Recorded tensors do not count, as the allocator waits
// for them before it gives up.
double needed_bytes(double tensors, const ReservedBytes& reserved);

// Returns the bytes that sums over tensor-parallel ranks read in one forward pass, if the framework records
// streams (Framework::records_streams); otherwise 0. For the worker with most of them.
double recorded_bytes(const Schedule& schedule, const Framework& framework);

// Returns the memory of the worker whose communicators take the most. NCCL has one communicator for each
// group of ranks that share collectives. `endpoints`: by rank, over all roles.
ReservedBytes reserved_bytes(const Schedule& schedule, const std::vector<int>& endpoints,
                             const Cluster& cluster, const Framework& framework = {});

// Returns the memory on a device without communicators.
ReservedBytes reserved_on(const Device& device, const Framework& framework);
// Returns the bytes that NCCL holds for one communicator of these members.
double communicator_bytes(const std::vector<int>& members, const Cluster& cluster);

}  // namespace rehearse
