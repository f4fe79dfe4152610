// Models what collectives take from the kernels that run beside them on a GPU: streaming multiprocessors,
// which NCCL's thread blocks occupy, and memory bandwidth.
#pragma once

#include "simulator/costs/transfer.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// Whether collectives slow down computation, and by what multiple of load_of().
struct Interference {
  bool on = true;    // applies to GPUs under the `nccl` protocol only
  double scale = 1;  // factor on the multiprocessors and the memory traffic
  bool applies(const Protocol& protocol, const Device& device) const {
    return on && protocol.kind == Protocol::nccl && device.compute_capability > 0 && device.compute_units > 0;
  }
};

// Standard deviation of ln(Interference::scale): ln(4/3), for four passes through memory instead of three
// (nccl::kMemoryPasses), which occur where NCCL first copies operands to its buffers.
inline constexpr double kInterferenceDeviation = 0.29;

// The load that collectives put on one device.
struct DeviceLoad {
  double units = 0;               // streaming multiprocessors that are busy
  double memory_bytes_per_s = 0;  // read and written together
  auto operator<=>(const DeviceLoad&) const = default;
};

// Returns the load of a collective over `bytes` (see Collective::bytes) that takes `seconds` alone on the
// network. While a member waits for the others (`seconds` is 0), its thread blocks occupy their
// multiprocessors but move no bytes.
DeviceLoad load_of(const Collective& collective, double bytes, const TransferShape& shape, double seconds);

// Returns the device that is left for kernels beside the load, with fewer free multiprocessors and less
// memory bandwidth. At least a tenth of each is left.
Device device_beside(Device device, const DeviceLoad& load);

}  // namespace rehearse
