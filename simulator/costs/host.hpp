// How long a node's processors, memory and drives take for what is kept off its devices.
#pragma once

#include <string>

#include "simulator/schedule/op.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// The share of a node's memory bandwidth that Adam reaches on its processors.
// Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training" (USENIX ATC 2021), table 4: CPU-Adam
// updates 1, 2, 4, 8 and 10 billion parameters in 0.22, 0.51, 1.03, 2.41 and 2.57 s on the processors of a
// DGX-2, two Xeon Platinum 8168 with 256 GB/s together. At 28 bytes a parameter (update_bytes() with
// gradients of 16 bits) that is 36 to 50 % of it, and 43 % in the middle.
inline constexpr double kHostUpdateEfficiency = 0.43;
inline constexpr const char* kHostUpdateSource =
    "Ren et al., ZeRO-Offload, USENIX ATC 2021, table 4: CPU-Adam on two Xeon Platinum 8168";

// bytes/s of one device's share, with all devices of the node at work. 0: the cluster does not say.
double host_copy_bandwidth(const Node& node);  // a direction, between device and host
double host_update_bandwidth(const Node& node);
double nvme_read_bandwidth(const Node& node);
double nvme_write_bandwidth(const Node& node);

// Seconds of an op's Op::host_bytes; 0 for ops without any.
double host_time_s(const Op& op, const Node& node);

// The key of [cluster.node] that the node lacks for keeping something in host memory, or on NVMe too;
// empty: none.
std::string missing_host_key(const Node& node, bool nvme);

}  // namespace rehearse
