#include "simulator/costs/reserved.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace rehearse {
namespace {

constexpr double kMiB = 1048576, kGiB = 1073741824;

// stas00/ml-engineering, training/performance/README.md, "Preloaded CUDA kernels memory usage", for an 80 GB
// GPU with PyTorch 2.1: 0.47 GB if kernels are loaded on their first call, 0.92 GB if all are loaded. A
// training job is in between.
constexpr double kContextBytes = 0.7 * kGiB;

// A connection has one buffer for each protocol, on one of its sides: NVIDIA/nccl v2.30.7, src/init.cc
// (DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE, DEFAULT_BUFFSIZE): 512 threads x 8 lines x 8 steps x 16 B;
// 640 threads x 120 elements x 8 steps x 8 B; 4 MiB.
constexpr double kConnectionBytes = 512.0 * 8 * 8 * 16 + 640.0 * 120 * 8 * 8 + 4 * kMiB;
// In a channel's ring, a rank receives from one neighbour. NCCL connects trees only when they are first used.
constexpr double kConnectionsOfChannel = 1;

// Returns the number of channels, as NCCL's logs report it ("coll channels"): 24 for eight GPUs on an
// NVSwitch, 16 across several nodes, 12 on the mesh of a DGX-1 with V100, 2 over PCIe.
double channels_of(const std::vector<int>& members, const Cluster& cluster) {
  const int node = cluster.node_of(members.front());
  const bool inside =
      std::all_of(members.begin(), members.end(), [&](int e) { return cluster.node_of(e) == node; });
  if (!inside) return 16;
  switch (cluster.node().interconnect) {
    case Node::Interconnect::nvswitch:
      return 24;
    case Node::Interconnect::nvlink_mesh:
      return 12;
    case Node::Interconnect::pcie:
    case Node::Interconnect::none:
      break;
  }
  return 2;
}

// Returns the size of cuBLAS's workspace. PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp,
// parseChosenWorkspaceSize: 2 x 4,096 + 8 x 16 KiB for each handle and stream; 32 MiB on Hopper and later, as
// NVIDIA's documentation of cuBLAS recommends.
double workspace_bytes(const Device& device) {
  constexpr int kHopper = 90;
  return device.compute_capability >= kHopper ? 32 * kMiB : (2 * 4096 + 8 * 16) * 1024.0;
}

}  // namespace

double communicator_bytes(const std::vector<int>& members, const Cluster& cluster) {
  if (members.size() < 2 || cluster.node().device.compute_capability == 0) return 0;
  return channels_of(members, cluster) * kConnectionsOfChannel * kConnectionBytes;
}

ReservedBytes reserved_on(const Device& device) {
  ReservedBytes reserved;
  if (device.compute_capability == 0) return reserved;
  reserved.context = kContextBytes;
  reserved.workspaces = workspace_bytes(device);
  return reserved;
}

ReservedBytes reserved_bytes(const Schedule& schedule, const std::vector<int>& endpoints,
                             const Cluster& cluster) {
  ReservedBytes reserved = reserved_on(cluster.node().device);
  if (reserved.context == 0) return reserved;
  for (const Program& program : schedule.programs) {
    if (program.role != kWorkers) continue;
    const int rank = first_rank_at(schedule.roles[kWorkers], program.where);
    if (rank < 0) continue;
    std::vector<Group> called;
    for (const Op& op : program.ops)
      if (op.kind == OpKind::collective &&
          std::find(called.begin(), called.end(), op.collective.group) == called.end())
        called.push_back(op.collective.group);
    std::set<std::vector<int>> groups;
    for (const Group& group : called) groups.insert(group_members(schedule.roles[kWorkers], group, rank));
    double bytes = 0;
    for (const std::vector<int>& group : groups) {
      std::vector<int> members;
      for (const int member : group) members.push_back(endpoints[static_cast<std::size_t>(member)]);
      bytes += communicator_bytes(members, cluster);
    }
    reserved.communication = std::max(reserved.communication, bytes);
  }
  return reserved;
}

}  // namespace rehearse
