// Memory of a GPU that no tensor of a schedule takes: what CUDA, NCCL and cuBLAS keep for themselves.
#pragma once

#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Bytes; an estimate. All are 0 on devices that are no GPUs.
struct ReservedBytes {
  double context = 0;        // CUDA's context and the kernels that it has loaded
  double communication = 0;  // buffers of NCCL's connections
  double workspaces = 0;     // cuBLAS's
  double total() const { return context + communication + workspaces; }
};

// Of the worker whose program uses the most communicators: NCCL has one for each group of ranks with which it
// shares collectives. `endpoints`: by rank over all roles.
ReservedBytes reserved_bytes(const Schedule& schedule, const std::vector<int>& endpoints,
                             const Cluster& cluster);

// Of a device without communicators.
ReservedBytes reserved_on(const Device& device);
// What NCCL keeps for one communicator of these members.
double communicator_bytes(const std::vector<int>& members, const Cluster& cluster);

}  // namespace rehearse
