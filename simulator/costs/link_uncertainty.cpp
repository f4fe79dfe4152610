#include "simulator/costs/link_uncertainty.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

// Distance between the quartiles of a normal distribution, in standard deviations.
constexpr double kDeviationsBetweenQuartiles = 1.349;

struct Mean {
  double sum = 0, count = 0;
  void add(const Spread& spread) {
    if (spread.value <= 0 || spread.low <= 0 || spread.high <= 0) return;
    sum += std::abs(std::log(spread.high / spread.low)) / kDeviationsBetweenQuartiles;
    ++count;
  }
  double value() const { return count > 0 ? sum / count : 0; }
};

LinkUncertainty of_profile(const LinkProfile& profile) {
  Mean inside, between, latency;
  for (const LinkCurve& curve : profile.curves)
    for (const SizeRange& range : curve.ranges) {
      Mean& rate = curve.reach == Reach::in_node ? inside : between;
      rate.add(range.bandwidth);
      rate.add(range.efficiency);
      latency.add(range.latency_s);
    }
  return {inside.value(), between.value(), latency.value(), profile.basis, "quartiles of the link profile"};
}

// Deviations of NCCL's bandwidths and latencies, by kind of links, from the tables of collectives in
// benchmarks/: errors on rows that set no constant. NVLink on boards and in racks; NICs, of which clouds
// differ by up to two times, and those without order, of which two published pairs differ by half as much
// again; latencies of boards and networks, and of racks.
constexpr double kBoard = 0.03, kRack = 0.08;
constexpr double kNics = 0.25, kUnorderedNics = 0.35;
constexpr double kLatency = 0.3, kLatencyOfRack = 0.1;

LinkUncertainty of_nccl(const Node& node) {
  const bool rack = std::max(node.devices, node.whole_devices) > nccl::kMostDevicesOfBoard;
  return {
      rack ? kRack : kBoard, node.nic_ordered ? kNics : kUnorderedNics, rack ? kLatencyOfRack : kLatency,
      rack ? Basis::interpolated : Basis::published,
      "errors on rows of published NCCL tables: 2.8 % on NVLink from 16 MiB on (rows of A100, V100 and DGX "
      "H100 that set constants), 5 to 10 % in a rack, 2 to 55 % from system to system over several nodes; "
      "NCCL's latencies against DGX H100 and p5 below 1 MiB, and XLA's in a rack"};
}

}  // namespace

LinkUncertainty link_uncertainty(const Protocol& protocol, const Node& node) {
  switch (protocol.kind) {
    case Protocol::ideal:
      return {};
    case Protocol::nccl:
      if (node.device.compute_capability == 0) return {};
      return of_nccl(node);
    case Protocol::tcp:
      return {0.03, 0.03, 0.3, Basis::measured,
              "59 runs in emulated clusters, median of absolute errors 3.1 %"};
    case Protocol::gloo:
      return {0.03, 0.03, 0.5, Basis::measured,
              "45 steps of PyTorch over Gloo, mean of absolute errors 1.1 %; how its latency is divided into "
              "calls and segments is a guess"};
    case Protocol::measured:
      return of_profile(*protocol.links);
  }
  return {};
}

}  // namespace rehearse
