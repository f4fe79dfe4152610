// Computes what NCCL's collectives cost inside a rack that is one NVLink domain, such as a GB200 NVL72.
// NCCL's own constants are those of boards of eight, and hops through a rack's switches take longer.
#pragma once

#include "simulator/costs/transfer.hpp"

namespace rehearse::nccl {

// Latency of a hop in microseconds, and startup, of rings and trees with one of kProtocols.
double rack_hop_us(int protocol);
double rack_startup_us(int protocol);

// Completes the cost of a ring or chain, of which the steps and the bytes are set.
void add_rack_ring(TransferCost& cost, CollectiveKind kind, double bytes, const TransferShape& shape,
                   int protocol);

// Completes the cost of an all-to-all, of which the bytes are set.
void add_rack_all_to_all(TransferCost& cost, double bytes, const TransferShape& shape);

// What NVSwitches that sum take for `ranks` of a rack: seconds before the first byte, bytes of the buffer per
// second for each byte/s of a GPU's NVLinks, and the ramp (see kRamp).
struct RackSwitch {
  double latency_s = 0, share = 0, ramp = 0;
};
RackSwitch rack_switch(double ranks);

}  // namespace rehearse::nccl
