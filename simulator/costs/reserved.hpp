// Estimates the memory of a GPU that is used outside the tensors of a schedule, by CUDA, NCCL and cuBLAS.
#pragma once

#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Estimated bytes. All are 0 on devices that are not GPUs.
struct ReservedBytes {
  double context = 0;        // CUDA's context and the kernels that it has loaded
  double communication = 0;  // buffers of NCCL's connections
  double workspaces = 0;     // of cuBLAS
  double total() const { return context + communication + workspaces; }
};

// Returns the memory of the worker whose communicators take the most. NCCL has one communicator for each
// group of ranks that share collectives. `endpoints`: by rank, over all roles.
ReservedBytes reserved_bytes(const Schedule& schedule, const std::vector<int>& endpoints,
                             const Cluster& cluster);

// Returns the memory on a device without communicators.
ReservedBytes reserved_on(const Device& device);
// Returns the bytes that NCCL holds for one communicator of these members.
double communicator_bytes(const std::vector<int>& members, const Cluster& cluster);

}  // namespace rehearse
