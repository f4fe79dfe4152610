#include "simulator/costs/interference.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

bool by_nvls(const Collective& collective) {
  return adder_of(collective.used_algorithm()) == Adder::nvlink_switches;
}

double thread_blocks(const Collective& collective, const TransferShape& shape) {
  if (collective.copy_engines) return 0;
  const std::size_t arch = nccl::architecture(shape.compute_capability);
  if (by_nvls(collective)) return (shape.nodes > 1 ? nccl::kBlocksNvlsTree : nccl::kBlocksNvls)[arch];
  if (shape.nodes == 1) return shape.nvlink_only ? nccl::kBlocksInNode[arch] : nccl::kBlocksOfRing;
  const int nics = std::max(1, shape.channels);
  constexpr double kRounding = 1e-6;
  const double rings_of_nic =
      std::max(1.0, std::ceil(shape.ring_bandwidth / nics / nccl::kRingBetweenNodes - kRounding));
  return std::min(nccl::kMostBlocksBetweenNodes, nccl::kBlocksOfRing * rings_of_nic * nics);
}

// Returns the bytes that one member reads from and writes to its memory.
double memory_traffic(const Collective& collective, double bytes, const TransferShape& shape) {
  const double n = shape.ranks;
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      if (by_nvls(collective)) return 2 * bytes;
      return nccl::kMemoryPasses * 2 * (n - 1) / n * bytes;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return nccl::kMemoryPasses * (n - 1) / n * bytes;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return nccl::kMemoryPasses * bytes;
    case CollectiveKind::all_to_all:
      return nccl::kMemoryPassesOfMessages * (n - 1) * bytes;
  }
  return 0;
}

}  // namespace

DeviceLoad load_of(const Collective& collective, double bytes, const TransferShape& shape, double seconds) {
  if (shape.ranks < 2 || shape.compute_capability == 0) return {};
  return {thread_blocks(collective, shape),
          seconds > 0 ? memory_traffic(collective, bytes, shape) / seconds : 0};
}

Device device_beside(Device device, const DeviceLoad& load) {
  constexpr double kLeast = 0.1;
  device.busy_units = std::min(load.units, (1 - kLeast) * device.compute_units);
  const double reached = device.memory_efficiency.value > 0 ? device.memory_efficiency.value : 1;
  device.memory_bandwidth.value = std::max(kLeast * device.memory_bandwidth.value,
                                           device.memory_bandwidth.value - load.memory_bytes_per_s / reached);
  return device;
}

}  // namespace rehearse
