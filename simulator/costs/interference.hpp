// What collectives take from the kernels that run beside them on a GPU: streaming multiprocessors, which
// NCCL's thread blocks keep busy, and memory bandwidth.
#pragma once

#include "simulator/costs/transfer.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// Whether collectives slow computing down, and by how much of what load_of() says.
struct Interference {
  bool on = true;    // GPUs that speak NCCL; all other devices and protocols do without
  double scale = 1;  // on the multiprocessors and the memory traffic
  bool applies(const Protocol& protocol, const Device& device) const {
    return on && protocol.kind == Protocol::nccl && device.compute_capability > 0 && device.compute_units > 0;
  }
};

// Standard deviation of ln(Interference::scale): ln(4/3), four passes through memory instead of three
// (nccl::kMemoryPasses), as where NCCL copies operands to its buffers first.
inline constexpr double kInterferenceDeviation = 0.29;

// What collectives keep busy of one device.
struct DeviceLoad {
  double units = 0;               // streaming multiprocessors
  double memory_bytes_per_s = 0;  // read and written
  auto operator<=>(const DeviceLoad&) const = default;
};

// The load of a collective over `bytes` (see Collective::bytes) that takes `seconds` alone on the network.
// While a member waits for the others (`seconds` 0) its thread blocks wait on their multiprocessors and move
// nothing.
DeviceLoad load_of(const Collective& collective, double bytes, const TransferShape& shape, double seconds);

// The device as kernels find it beside the load: with fewer free multiprocessors and less memory bandwidth.
// At least a tenth of both is left.
Device device_beside(Device device, const DeviceLoad& load);

}  // namespace rehearse
