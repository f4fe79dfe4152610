#include "simulator/costs/reserved.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
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

// Returns the size of the workspaces. PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp,
// parseChosenWorkspaceSize: 2 x 4,096 + 8 x 16 KiB for each handle and stream, 32 MiB on Hopper and later, as
// NVIDIA's documentation of cuBLAS recommends; the thread of the backward pass has a handle of its own.
// Transformer Engine v2.9, transformer_engine/pytorch/module/base.py, get_cublas_workspace_size_bytes: 4 MiB,
// 32 MiB on Hopper and later.
double workspace_bytes(const Device& device, const Framework& framework) {
  constexpr int kHopper = 90, kHandles = 2;
  const bool hopper = device.compute_capability >= kHopper;
  const double usual = hopper ? 32 * kMiB : (2 * 4096 + 8 * 16) * 1024.0;
  return kHandles * (framework.deterministic_products ? 8 * 4096 * 1024.0 : usual) +
         framework.engine_workspaces * (hopper ? 32 : 4) * kMiB;
}

// What the driver keeps of a device's memory: PyTorch's messages of jobs out of memory tell a capacity
// of 79.10 to 79.33 GiB for an H100 of 80.
constexpr double kDriverShare = 0.01;

}  // namespace

// Measured with 4 A100s and NVLink: 544 MiB for a communicator of two ranks, 688 MiB for more (NVIDIA/nccl
// issue 964). An all-to-all connects all pairs in a node over 32 channels, by 10 and 2 MiB each (issue 1685).
double most_communicator_bytes(std::size_t members, bool all_to_all, const Cluster& cluster) {
  constexpr double kTwo = 544 * kMiB, kMore = 688 * kMiB, kPair = 32 * 12 * kMiB;
  if (members < 2) return 0;
  const auto peers = static_cast<double>(std::min<std::size_t>(members, cluster.node().devices) - 1);
  return (members == 2 ? kTwo : kMore) + (all_to_all ? peers * kPair : 0);
}

double communicator_bytes(const std::vector<int>& members, const Cluster& cluster) {
  if (members.size() < 2 || cluster.node().device.compute_capability == 0) return 0;
  return channels_of(members, cluster) * kConnectionsOfChannel * kConnectionBytes;
}

// Blocks that are too small for what is asked for next stay reserved. Their share of what is allocated:
// SimuMax v1.2 docs/b200 measured 2.8 to 7.1 % in ten jobs of Megatron-LM, 2.9 % in six of them; the playbook
// of nanotron's 713 jobs 3 to 16 % in the middle half of those without recorded streams.
constexpr double kExpectedShare = 1.05, kMostShare = 1.16;

AllocatorBytes allocator_bytes(double allocated, double recorded, bool waits, double capacity) {
  // A tensor that was recorded on the stream of a collective is reused only when the device has passed the
  // collective (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, recordStream). A process that runs ahead
  // has issued the forward pass by then; how far it is ahead differs between jobs.
  // If the device is full, the allocator waits for the device and frees what nobody uses.
  const double most = capacity > 0 ? std::max(allocated, capacity) : std::numeric_limits<double>::infinity();
  return {allocated, allocated, std::min(most, kExpectedShare * allocated + (waits ? 0 : recorded)),
          std::min(most, kMostShare * allocated + 2 * recorded)};
}

double needed_bytes(double tensors, const ReservedBytes& reserved) {
  return kMostShare * (tensors + reserved.workspaces) + reserved.context + reserved.driver +
         reserved.most_communication;
}

double recorded_bytes(const Schedule& schedule, const Framework& framework) {
  double most = 0;
  if (!framework.records_streams) return most;
  for (const Program& program : schedule.programs) {
    double bytes = 0;
    for (const Op& op : program.ops)
      if (op.kind == OpKind::collective && op.pass == Pass::forward && op.microbatch == 0 &&
          op.purpose == Purpose::tensor && op.collective.kind == CollectiveKind::reduce_scatter)
        bytes += op.collective.bytes.base;
    most = std::max(most, bytes);
  }
  return most;
}

ReservedBytes reserved_on(const Device& device, const Framework& framework) {
  ReservedBytes reserved;
  if (device.compute_capability == 0) return reserved;
  reserved.context = kContextBytes;
  reserved.workspaces = workspace_bytes(device, framework);
  reserved.driver = kDriverShare * device.memory_bytes.value;
  return reserved;
}

ReservedBytes reserved_bytes(const Schedule& schedule, const std::vector<int>& endpoints,
                             const Cluster& cluster, const Framework& framework) {
  ReservedBytes reserved = reserved_on(cluster.node().device, framework);
  if (reserved.context == 0) return reserved;
  for (const Program& program : schedule.programs) {
    if (program.role != kWorkers) continue;
    const int rank = first_rank_at(schedule.roles[kWorkers], program.where);
    if (rank < 0) continue;
    std::vector<std::pair<Group, bool>> called;  // whether it exchanges all to all
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::collective) continue;
      auto known = std::find_if(called.begin(), called.end(),
                                [&](const auto& group) { return group.first == op.collective.group; });
      if (known == called.end()) known = called.insert(known, {op.collective.group, false});
      if (op.collective.kind == CollectiveKind::all_to_all) known->second = true;
    }
    std::map<std::vector<int>, bool> groups;
    for (const auto& [group, all_to_all] : called) {
      bool& its = groups[group_members(schedule.roles[kWorkers], group, rank)];
      its = its || all_to_all;
    }
    // Messages between pipeline stages have a communicator of their own, whose pairs connect.
    const bool exchanges = std::any_of(program.ops.begin(), program.ops.end(),
                                       [](const Op& op) { return op.kind == OpKind::exchange; });
    double bytes = 0, most = exchanges ? most_communicator_bytes(2, false, cluster) : 0;
    for (const auto& [group, all_to_all] : groups) {
      std::vector<int> members;
      for (const int member : group) members.push_back(endpoints[static_cast<std::size_t>(member)]);
      bytes += communicator_bytes(members, cluster);
      most += most_communicator_bytes(members.size(), all_to_all, cluster);
    }
    reserved.communication = std::max(reserved.communication, bytes);
    reserved.most_communication = std::max({reserved.most_communication, bytes, most});
  }
  return reserved;
}

}  // namespace rehearse
