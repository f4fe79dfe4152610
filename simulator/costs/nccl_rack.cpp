#include "simulator/costs/nccl_rack.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "simulator/costs/nccl_constants.hpp"

namespace rehearse::nccl {
namespace {

// All constants here are fitted to XLA's measurements of one GB200 NVL72 (openxla/xla,
// xla/service/gpu/model: default_collective_perf_table) of 4 to 72 GPUs, from 8 KiB on: to every other row by
// kind, number of GPUs and size. The other rows, and all of a GB300 NVL72, set nothing; they are off by 6 to
// 7 and 5 to 8 % (rings and NVLS), and by 10 % (all-to-all).

// Rings, by protocol: latency of a hop, startup, share of the bus bandwidth, and the share of NVLink's rate
// that this bandwidth is.
constexpr std::array<double, 3> kHopUs = {1.37, 1.95, 1.65};
constexpr std::array<double, 3> kStartupUs = {9.6, 8.5, 13.4};
constexpr std::array<double, 3> kEfficiency = {0.58, 0.69, 1.0};
constexpr double kShare = 0.777;
constexpr double kRampOfRings = 2.56;  // as kRamp, but the same for half of an all-reduce
// The least time of a call on few GPUs.
constexpr double kLeastUs = 18.3;

// All-to-all: up to this many bytes for each peer go by LL, whose bandwidth does not depend on their number.
// Peers are served one group after the other, so that latency grows with the square of their number; up to
// four GPUs take longer than eight, for a reason that is not known.
constexpr double kMostBytesLL = 524288, kBandwidthLL = 144e9;
constexpr double kPeersUs = 10.94, kPeersSquaredUs = 0.0075, kFewPeersUs = 23.2;
constexpr int kFewPeers = 4;
constexpr double kShareOfMessages = 0.743, kRampOfMessages = 3.42;

// NVLS: latency, and its growth with each doubling of the GPUs; share of a GPU's NVLinks, its loss on the
// GPU's own part, and the number of GPUs at which half of it is left.
constexpr double kSwitchUs = 21.9, kSwitchDoublingUs = 4.96;
constexpr double kSwitchShare = 0.620, kSwitchOwnShare = 0.227, kSwitchHalved = 240;
constexpr double kSwitchRamp = 6.73;

}  // namespace

double rack_hop_us(int protocol) {
  return kHopUs[static_cast<std::size_t>(protocol)];
}

double rack_startup_us(int protocol) {
  return kStartupUs[static_cast<std::size_t>(protocol)];
}

void add_rack_ring(TransferCost& cost, CollectiveKind kind, double bytes, const TransferShape& shape,
                   int protocol) {
  const double steps_us = cost.steps * rack_hop_us(protocol);
  cost.protocol = kProtocols[static_cast<std::size_t>(protocol)];
  cost.step_latency_s = 1e-6 * rack_hop_us(protocol);
  cost.startup_s = 1e-6 * std::max(rack_startup_us(protocol), kLeastUs - steps_us);
  cost.efficiency = kShare * kEfficiency[static_cast<std::size_t>(protocol)];
  if (protocol == kLL) return;
  if (kind == CollectiveKind::all_reduce)
    cost.efficiency /= 1 + kStoreAndSend[architecture(shape.compute_capability)] / cost.steps;
  if (shape.ring_bandwidth > 0)
    cost.ramp_s = kRampOfRings * std::sqrt(bytes * kRampBytes) / (kShare * shape.ring_bandwidth);
}

void add_rack_all_to_all(TransferCost& cost, double bytes, const TransferShape& shape) {
  const double peers = shape.ranks;
  cost.step_latency_s = 0;
  cost.startup_s =
      1e-6 * (shape.ranks <= kFewPeers ? kFewPeersUs : kPeersUs + kPeersSquaredUs * peers * peers);
  cost.protocol = kProtocols[bytes <= kMostBytesLL ? kLL : kSimple];
  cost.efficiency = kShareOfMessages;
  if (shape.ring_bandwidth <= 0) return;
  if (bytes <= kMostBytesLL)
    cost.efficiency = std::min(kShareOfMessages, kBandwidthLL / shape.ring_bandwidth);
  else
    cost.ramp_s = kRampOfMessages * std::sqrt(cost.bytes_per_edge * kRampBytes) /
                  (kShareOfMessages * shape.ring_bandwidth);
}

RackSwitch rack_switch(double ranks) {
  return {1e-6 * (kSwitchUs + kSwitchDoublingUs * std::log2(ranks)),
          kSwitchShare * (1 - kSwitchOwnShare / ranks) / (1 + ranks / kSwitchHalved), kSwitchRamp};
}

}  // namespace rehearse::nccl
