// Computes how long a node's processors, memory and drives take for data that is kept off its devices.
#pragma once

#include <string>

#include "simulator/schedule/op.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Share of a node's memory bandwidth that Adam reaches on the node's processors.
// Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training" (USENIX ATC 2021), table 4: CPU-Adam
// updates 1, 2, 4, 8 and 10 billion parameters in 0.22, 0.51, 1.03, 2.41 and 2.57 s on the processors of a
// DGX-2, two Xeon Platinum 8168 with 256 GB/s together. At 28 bytes per parameter (update_bytes() with 16-bit
// gradients) that is 36 to 50 % of the bandwidth, with a median of 43 %.
inline constexpr double kHostUpdateEfficiency = 0.43;
inline constexpr const char* kHostUpdateSource =
    "Ren et al., ZeRO-Offload, USENIX ATC 2021, table 4: CPU-Adam on two Xeon Platinum 8168";

// Bandwidth of one device's share in bytes/s while all devices of the node are active; 0 if the cluster does
// not state it.
double host_copy_bandwidth(const Node& node);  // per direction, between device and host
double host_update_bandwidth(const Node& node);
double nvme_read_bandwidth(const Node& node);
double nvme_write_bandwidth(const Node& node);

// Returns the usual bytes/s of copies between pinned host memory and a GPU of this generation.
double usual_copy_bandwidth(const Device& device);

// Returns the seconds that an op's Op::host_bytes take; 0 for ops without host bytes.
double host_time_s(const Op& op, const Node& node);

// Returns the key of [cluster.node] that is missing for keeping data in host memory or, with `nvme`, also on
// NVMe drives; empty if none is missing.
std::string missing_host_key(const Node& node, bool nvme);

}  // namespace rehearse
