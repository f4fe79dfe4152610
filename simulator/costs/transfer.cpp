#include "simulator/costs/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulator/costs/gloo_constants.hpp"
#include "simulator/costs/nccl_constants.hpp"
#include "simulator/costs/nccl_rack.hpp"

namespace rehearse {
namespace {

// Returns the steps and bytes of the algorithm; only the cost of a step depends on the protocol.
TransferCost ideal_cost(CollectiveKind kind, double bytes, const TransferShape& shape) {
  TransferCost cost;
  const int n = shape.ranks;
  if (n < 2) return cost;
  cost.step_latency_s = shape.hop_latency_s;
  switch (kind) {
    case CollectiveKind::all_reduce:
      cost.steps = 2 * (n - 1);
      cost.bytes_per_edge = 2.0 * (n - 1) / n * bytes;
      break;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      cost.steps = n - 1;
      cost.bytes_per_edge = (n - 1.0) / n * bytes;
      break;
    case CollectiveKind::all_to_all:
      // Pairwise exchange: n-1 steps, in each of which every rank sends one block to another rank. There are
      // no ring edges; `bytes_per_edge` is the total that a rank sends (and receives).
      cost.steps = n - 1;
      cost.bytes_per_edge = (n - 1.0) * bytes;
      break;
    case CollectiveKind::broadcast:  // along the chain, in pieces small enough to keep all its edges busy
    case CollectiveKind::reduce:
      cost.steps = n - 1;
      cost.bytes_per_edge = bytes;
      break;
  }
  return cost;
}

// Latency of one hop inside a node, and of one between nodes. The tables include the route inside a node, but
// only the software's share of the network's latency. The latency of the network's route is added to it
// (twice for Simple, which flushes).
double intra_latency_us(int protocol, const TransferShape& shape) {
  const double host = shape.nodes > 1 ? nccl::kNetOverheadUs * (protocol == nccl::kSimple ? 3 : 1) : 0;
  return std::max(shape.rack ? nccl::rack_hop_us(protocol) : nccl::kNvlinkLatencyUs[protocol], host);
}
double inter_latency_us(int protocol, double hop_latency_s) {
  return nccl::kNetLatencyUs[protocol] + 1e6 * hop_latency_s * (protocol == nccl::kSimple ? 2 : 1);
}

// Returns the number of steps that cross between nodes.
int steps_between_nodes(CollectiveKind kind, const TransferShape& shape) {
  if (shape.nodes < 2) return 0;
  if (kind == CollectiveKind::all_reduce) return 2 * (shape.nodes - 1);
  // Pairwise: all blocks except those for ranks of the same node.
  if (kind == CollectiveKind::all_to_all) return shape.ranks - std::max(1, shape.ranks / shape.nodes);
  return shape.nodes - 1;
}

// Returns the share of `ring_bandwidth` that NCCL's channels fill: that of PCIe on one node with hops over
// it, else that of the NVLinks or that of the NICs, whichever is lower.
double channel_share(const TransferShape& shape) {
  const auto arch = nccl::architecture(shape.compute_capability);
  const double nvlink = nccl::kNvlinkShare[arch] * (shape.relayed ? nccl::kRelayShare : 1);
  if (shape.nodes == 1) return shape.nvlink_only ? nvlink : shape.pcie_share;
  if (shape.nvlink_bandwidth <= 0 || shape.ring_bandwidth <= 0) return shape.nic_share;
  return std::min(shape.nic_share, nvlink * shape.nvlink_bandwidth / shape.ring_bandwidth);
}

double ramp_s(double bytes, double factor, double bandwidth) {
  return bandwidth > 0 ? factor * std::sqrt(bytes * nccl::kRampBytes) / bandwidth : 0;
}

// Returns the ramp of rings and trees on NVLink. LL's bandwidth is so low that no ramp limits it. A
// reduce-scatter or all-gather is half of an all-reduce.
double nvlink_ramp_s(CollectiveKind kind, double bytes, const TransferShape& shape, int protocol) {
  if (!shape.nvlink_only || protocol == nccl::kLL) return 0;
  const auto arch = nccl::architecture(shape.compute_capability);
  const double part = kind == CollectiveKind::all_reduce ? 1 : 0.5;
  return ramp_s(bytes, part * nccl::kRamp[arch], channel_share(shape) * shape.ring_bandwidth);
}

TransferCost nccl_cost(CollectiveKind kind, double bytes, const TransferShape& shape, int protocol) {
  TransferCost cost = ideal_cost(kind, bytes, shape);
  if (shape.rack && shape.nvlink_only) {
    if (kind == CollectiveKind::all_to_all)
      nccl::add_rack_all_to_all(cost, bytes, shape);
    else
      nccl::add_rack_ring(cost, kind, bytes, shape, protocol);
    return cost;
  }
  cost.protocol = nccl::kProtocols[protocol];
  const int inter = std::min(cost.steps, steps_between_nodes(kind, shape));
  double startup_us = nccl::kBaseLatencyUs[protocol];
  double steps_us = (cost.steps - inter) * intra_latency_us(protocol, shape) +
                    inter * inter_latency_us(protocol, shape.hop_latency_s);
  const bool plateau =
      kind == CollectiveKind::all_reduce && protocol == nccl::kSimple && shape.nodes > 1 &&
      bytes / (std::max(1, shape.channels) * static_cast<double>(shape.ranks)) >= nccl::kPlateauBytes;
  if (plateau) {
    const double factor =
        shape.compute_capability < 80 ? nccl::kPlateauFactorBeforeAmpere : nccl::kPlateauFactor;
    startup_us *= factor;
    steps_us *= factor;
  }
  cost.startup_s = 1e-6 * startup_us;
  cost.step_latency_s = 1e-6 * steps_us / cost.steps;

  cost.efficiency = nccl::kRingEfficiency[protocol] * channel_share(shape);
  if (shape.nvlink_only && kind == CollectiveKind::all_reduce && protocol != nccl::kLL) {
    const double store = nccl::kStoreAndSend[nccl::architecture(shape.compute_capability)];
    cost.efficiency /= 1 + store / cost.steps;
  }
  if (shape.nodes > 2 && shape.ranks > shape.nodes && kind != CollectiveKind::all_to_all &&
      shape.compute_capability >= nccl::kFirstCapabilityRingLoss)
    cost.efficiency /= 1 + nccl::kRingLoss * (std::log2(shape.nodes) - 1);
  cost.ramp_s = nvlink_ramp_s(kind, bytes, shape, protocol);
  if (protocol == nccl::kLL && shape.ring_bandwidth > 0) {
    const int row = shape.nodes == 1 ? nccl::architecture(shape.compute_capability) : 0;
    const int column = std::min(shape.nodes, 3) - 1;
    cost.efficiency = std::min(cost.efficiency, nccl::kMaxBandwidthLL[row][column] / shape.ring_bandwidth);
  }
  if (protocol == nccl::kLL128 && shape.ring_bandwidth > 0 && shape.nodes > 1) {
    const double most = std::max(1, shape.channels) *
                        nccl::kMaxChannelBandwidthLL128[nccl::architecture(shape.compute_capability)];
    cost.efficiency = std::min(cost.efficiency, most / shape.ring_bandwidth);
  }
  return cost;
}

// Returns the share of the bus bandwidth that trees reach with this protocol.
double tree_efficiency(double bytes, const TransferShape& shape, int protocol) {
  const int arch = nccl::architecture(shape.compute_capability), column = std::min(shape.nodes, 3) - 1;
  const double channels = std::max(1, shape.channels);
  double bus = shape.ring_bandwidth * channel_share(shape);
  // A chain of two has one edge in each direction where longer chains have two; NCCL assumes two.
  if (shape.nvlink_only)
    bus = std::min(bus, nccl::kNvlinkShare[static_cast<std::size_t>(arch)] * shape.nvlink_bandwidth);
  // The same holds of hops over PCIe: members in the middle of a chain have two edges at their ports.
  if (shape.nodes == 1 && shape.pcie_bandwidth > 0 && shape.ranks > 2)
    bus = std::min(bus, shape.pcie_share * shape.pcie_bandwidth);
  double reached = nccl::kTreeEfficiency * bus;
  if (shape.nodes > 1) reached = std::min(reached, channels * nccl::kMaxChannelBandwidthTree[arch][column]);
  if (protocol == nccl::kLL) {
    const int row = shape.nodes == 1 ? arch : 0;
    reached = std::min(reached * nccl::kTreeEfficiencyLL, nccl::kMaxBandwidthLL[row][column]);
  }
  if (protocol == nccl::kLL128) {
    reached *= shape.nodes == 1 ? nccl::kTreeEfficiencyLL128 : nccl::kTreeEfficiencyLL128Nodes;
    if (shape.nodes > 1)
      reached = std::min(reached, channels * nccl::kMaxChannelBandwidthTreeLL128[arch][column]);
  }
  if (shape.ranks == shape.nodes) reached *= nccl::kTreeEfficiencyOneRankANode;
  // The correction stands for the time until the tree is filled, which add_unordered() counts.
  const bool counted = shape.nodes > 1 && !shape.nic_ordered;
  const auto& correction = nccl::kTreeCorrection[static_cast<std::size_t>(protocol)];
  if (bytes >= 64 && !counted) {
    const auto size = static_cast<std::size_t>(std::ilogb(bytes / 64));
    if (size < correction.size()) reached *= correction[size];
  }
  return reached / shape.ring_bandwidth;
}

Reach reach_of(const TransferShape& shape) {
  return shape.nodes > 1 ? Reach::between_nodes : Reach::in_node;
}

// Adds the measured cost of a step whose path has `edges` messages of `bytes`, one after the other, to an
// ideal cost, which already has the latency of their routes. `link` is the bandwidth that the links leave to
// each message; it uses no more of it than was measured. Without a curve, the cost stays the same.
void add_measured(TransferCost& cost, const LinkCurve* curve, double bytes, int edges, double link) {
  if (curve == nullptr) return;
  const SizeRange& range = curve->range_of(bytes);
  cost.step_latency_s += edges * range.latency_s.value;
  cost.efficiency = range.efficiency.value;
  if (cost.efficiency <= 0) cost.efficiency = link > 0 ? std::min(1.0, range.bandwidth.value / link) : 1;
}

bool is_chain(CollectiveKind kind) {
  return course_of(kind) == Course::from_root || course_of(kind) == Course::to_root;
}

// The last edge of a chain waits for the first piece until all edges before it have carried that piece. This
// adds the time of a piece on every edge but one to the time of all bytes on one edge.
void add_filling(TransferCost& cost, double piece, double bandwidth) {
  if (bandwidth > 0) cost.filling_s = (cost.steps - 1) * piece / bandwidth;
}

void add_tcp(TransferCost& cost, const TransferShape& shape, const Protocol& protocol) {
  if (shape.nodes > 1) cost.efficiency = tcp_efficiency(protocol.frame_overhead_bytes);
}

// Gloo's ring sends N segments in each of its two phases, each of them c on the wire, and posts a segment
// once the last but one has arrived and, in the first phase, has been summed. A phase takes N c, plus the
// wait for the last segment, plus, for every pair of segments, the part of that wait that exceeds the other
// segment's time on the wire.
void add_gloo(TransferCost& cost, CollectiveKind kind, double bytes, const TransferShape& shape) {
  const double arrival_s = cost.step_latency_s + gloo::kSegmentLatencyS;
  cost.startup_s += gloo::kCallS;
  cost.step_latency_s = arrival_s;
  if (kind != CollectiveKind::all_reduce || shape.ring_bandwidth <= 0) return;
  const double of_rank = std::max(static_cast<double>(gloo::kLeastSegments),
                                  std::ceil(std::ceil(bytes / gloo::kMostSegmentBytes) / shape.ranks));
  const double segment = bytes / (of_rank * shape.ranks), pairs = (shape.ranks - 1) * of_rank / 2 - 1;
  const double wire_s = segment / (cost.efficiency * shape.ring_bandwidth),
               summed_s = arrival_s + segment / gloo::kSummedBytesPerS;
  cost.startup_s += summed_s + arrival_s;
  cost.step_latency_s =
      pairs * (std::max(0.0, summed_s - wire_s) + std::max(0.0, arrival_s - wire_s)) / cost.steps;
}

// Chains and trees are always cut into pieces; otherwise all but one of their edges would have to wait.
double pieces_in_flight(double chunk_bytes) {
  return chunk_bytes > 0 ? chunk_bytes : nccl::kPieceBytes;
}

// Returns the size of a message of the ring, the chain or the pairs.
double message_of_ring(CollectiveKind kind, const TransferCost& cost, const TransferShape& shape,
                       double chunk_bytes) {
  const double channel_bytes = cost.bytes_per_edge / std::max(1, shape.channels);
  switch (course_of(kind)) {
    case Course::from_root:
    case Course::to_root:
      return piece_of(channel_bytes, pieces_in_flight(chunk_bytes));
    case Course::pairs:
      return cost.bytes_per_edge / cost.steps;
    case Course::ring:
      break;
  }
  return piece_of(channel_bytes / cost.steps, chunk_bytes);
}

// Returns the time that NCCL predicts when it chooses a protocol: without ramps.
double time_as_chosen(const TransferCost& cost, double bandwidth) {
  const double bytes_s = bandwidth > 0 ? cost.bytes_per_edge / (cost.efficiency * bandwidth) : 0;
  return cost.startup_s + cost.filling_s + cost.steps * cost.step_latency_s + bytes_s;
}

// Returns whether NCCL can use the protocol here, and may (Protocol::only; a protocol that it cannot use is
// not asked for).
bool speaks(int p, const TransferShape& shape, const Protocol& protocol) {
  const auto can = [&](int which) {
    if (which == nccl::kLL128 && shape.compute_capability < nccl::kFirstCapabilityLL128) return false;
    return which == nccl::kSimple || shape.nodes == 1 || shape.nic_ordered;
  };
  return can(p) && (protocol.only < 0 || protocol.only == p || !can(protocol.only));
}

// Adds what filling a tree over several nodes takes where NICs do not keep order, and what their rendezvous
// take.
void add_unordered(TransferCost& cost, double bytes, const TransferShape& shape) {
  const double levels = 2.0 * std::ilogb(shape.nodes);
  if (bytes >= nccl::kLeastRendezvousBytes) cost.step_latency_s += 1e-6 * levels * nccl::kRendezvousUs;
  const double channels = nccl::kBlocksOfRing * std::max(1, shape.channels);
  const double piece = std::min(nccl::kPieceBytes, bytes / (2 * channels));
  const double in_node = 2 * (static_cast<double>(shape.ranks) / shape.nodes - 1);
  cost.filling_s = piece * (in_node / nccl::kChannelInNode +
                            levels * channels / (shape.nic_share * shape.ring_bandwidth / 2));
}

// Adds what other software than NCCL's tests loses on boards.
TransferCost with_software(TransferCost cost, const TransferShape& shape, const Protocol& protocol) {
  if (protocol.software != Protocol::xla || !shape.nvlink_only || shape.rack) return cost;
  const auto arch = nccl::architecture(shape.compute_capability);
  cost.startup_s += 1e-6 * nccl::kXlaStartupUs[arch];
  const double doublings = std::clamp(std::log2(shape.ranks) - 1, 0.0, 2.0);
  const double share = std::lerp(nccl::kXlaShareOfTwo[arch], nccl::kXlaShareOfEight[arch], doublings / 2);
  cost.efficiency *= share;
  cost.ramp_s /= share;
  return cost;
}

}  // namespace

double piece_of(double bytes, double most) {
  return most > 0 && bytes > most ? bytes / std::ceil(bytes / most) : bytes;
}

double tcp_efficiency(double frame_overhead_bytes) {
  constexpr double kMtu = 1500, kHeaders = 20 + 20 + 12;
  return (kMtu - kHeaders) / (kMtu + frame_overhead_bytes);
}

TransferCost ring_cost(CollectiveKind kind, double bytes, const TransferShape& shape,
                       const Protocol& protocol, double chunk_bytes) {
  if (shape.ranks < 2 || protocol.kind != Protocol::nccl) {
    TransferCost cost = ideal_cost(kind, bytes, shape);
    if (cost.steps == 0) return cost;
    const double message = message_of_ring(kind, cost, shape, chunk_bytes),
                 link = shape.ring_bandwidth / std::max(1, shape.channels);
    if (protocol.over_tcp()) {
      add_tcp(cost, shape, protocol);
      if (is_chain(kind)) add_filling(cost, message, cost.efficiency * link);
    }
    if (protocol.kind == Protocol::gloo) add_gloo(cost, kind, bytes, shape);
    if (protocol.kind == Protocol::measured) {
      const LinkCurve* curve = protocol.links->collective(kind, reach_of(shape), shape.ranks);
      add_measured(cost, curve, message, 1, link);
      if (is_chain(kind) && curve != nullptr)
        add_filling(cost, message,
                    link > 0 ? cost.efficiency * link : curve->range_of(message).bandwidth.value);
    }
    return cost;
  }
  if (shape.compute_capability == 0) return ideal_cost(kind, bytes, shape);
  // NCCL implements all-to-all as grouped sends and receives, which only support the Simple protocol.
  if (kind == CollectiveKind::all_to_all)
    return with_software(nccl_cost(kind, bytes, shape, nccl::kSimple), shape, protocol);
  TransferCost best;
  double best_s = std::numeric_limits<double>::infinity();
  for (int p : {nccl::kLL, nccl::kLL128, nccl::kSimple}) {
    if (!speaks(p, shape, protocol)) continue;
    const TransferCost cost = nccl_cost(kind, bytes, shape, p);
    const double seconds = time_as_chosen(cost, shape.ring_bandwidth);
    if (seconds < best_s) {
      best_s = seconds;
      best = cost;
    }
  }
  return with_software(best, shape, protocol);
}

TransferCost tree_cost(double bytes, const TransferShape& shape, const Protocol& protocol,
                       double chunk_bytes) {
  TransferCost ideal;
  if (shape.ranks < 2) return ideal;
  ideal.steps = 1;
  ideal.step_latency_s = shape.tree_latency_s;
  ideal.bytes_per_edge = 2 * bytes;  // as ring_bandwidth counts them
  // There are two trees, and the bus bandwidth counts each of them in both directions.
  const int channels = std::max(1, shape.channels);
  const double piece = piece_of(bytes / 2 / channels, pieces_in_flight(chunk_bytes)),
               link = shape.ring_bandwidth / channels;
  if (protocol.over_tcp()) add_tcp(ideal, shape, protocol);
  if (protocol.kind == Protocol::gloo) ideal.step_latency_s += shape.tree_edges * gloo::kSegmentLatencyS;
  if (protocol.kind == Protocol::measured)
    add_measured(ideal, protocol.links->messages(reach_of(shape)), piece, shape.tree_edges, link / 4);
  if ((protocol.over_tcp() || protocol.kind == Protocol::measured) && link > 0)
    ideal.filling_s = 2 * piece / ideal.efficiency *
                      std::max(0.0, shape.tree_s_per_byte - shape.tree_edge_s_per_byte - 2 / link);
  if (protocol.kind != Protocol::nccl || shape.compute_capability == 0 || shape.ring_bandwidth <= 0)
    return ideal;
  TransferCost best;
  double best_s = std::numeric_limits<double>::infinity();
  for (int p : {nccl::kLL, nccl::kLL128, nccl::kSimple}) {
    if (!speaks(p, shape, protocol)) continue;
    TransferCost cost = ideal;
    cost.protocol = nccl::kProtocols[p];
    const bool rack = shape.rack && shape.nvlink_only;
    cost.startup_s = 1e-6 * std::max(nccl::kTreeBaseLatencyUs[p], rack ? nccl::rack_startup_us(p) : 0.0);
    const double inter_us =
        nccl::kTreeNetLatencyUs[p] + 1e6 * shape.hop_latency_s * (p == nccl::kSimple ? 2 : 1);
    const double in_node = static_cast<double>(shape.ranks) / shape.nodes - 1;
    cost.step_latency_s =
        2e-6 * (in_node * std::max(nccl::kTreeNvlinkLatencyUs[p], shape.rack ? nccl::rack_hop_us(p) : 0.0) +
                std::ilogb(shape.nodes) * inter_us);
    cost.efficiency = tree_efficiency(bytes, shape, p);
    if (shape.nodes > 1 && !shape.nic_ordered) add_unordered(cost, bytes, shape);
    cost.ramp_s = nvlink_ramp_s(CollectiveKind::all_reduce, bytes, shape, p);
    const double seconds = time_as_chosen(cost, shape.ring_bandwidth);
    if (seconds < best_s) {
      best_s = seconds;
      best = cost;
    }
  }
  return with_software(best, shape, protocol);
}

namespace {

// Returns the cost of sums in switches: it depends on the bandwidth of the links and the latency of the path.
TransferCost switched_cost(double bytes, const TransferShape& shape, const Protocol& protocol) {
  TransferCost cost;
  cost.steps = 1;
  cost.bytes_per_edge = bytes;  // as ring_bandwidth counts them
  cost.step_latency_s = shape.hop_latency_s + shape.tree_latency_s;
  if (protocol.over_tcp()) add_tcp(cost, shape, protocol);
  if (protocol.kind == Protocol::measured)
    add_measured(cost, protocol.links->messages(reach_of(shape)), bytes / shape.ranks, 2,
                 shape.ring_bandwidth / std::max(1, shape.channels));
  return cost;
}

}  // namespace

TransferCost nvls_cost(double bytes, const TransferShape& shape, const Protocol& protocol) {
  if (shape.ranks < 2) return {};
  TransferCost cost = switched_cost(bytes, shape, protocol);
  if (protocol.kind != Protocol::nccl || shape.compute_capability < nccl::kFirstCapabilityNvls) return cost;
  const auto arch = nccl::architecture(shape.compute_capability);
  const double local = static_cast<double>(shape.ranks) / shape.nodes;
  const double net_ramp = (shape.nodes > 1 ? nccl::kNvlsTreeRamp : nccl::kNvlsRamp)[arch];
  const nccl::RackSwitch board = {1e-6 * nccl::kNvlsLatencyUs,
                                  nccl::kNvlsShare[arch] * (1 - nccl::kNvlsOwnShare / local), net_ramp};
  const nccl::RackSwitch sums = shape.rack ? nccl::rack_switch(local) : board;
  const double switched = sums.share * shape.nvlink_bandwidth;
  cost.protocol = nccl::kProtocols[nccl::kSimple];
  cost.step_latency_s = sums.latency_s;
  if (shape.nodes > 1)
    cost.step_latency_s +=
        2 * std::ilogb(shape.nodes) * (1e-6 * nccl::kNvlsTreeNetLatencyUs + shape.hop_latency_s);
  if (switched <= 0 || shape.ring_bandwidth <= 0) return with_software(cost, shape, protocol);
  // Nodes and the network between them work at the same time, so the slower of the two determines the
  // bandwidth.
  const double net = shape.nodes > 1 ? shape.nic_share : 1;
  cost.efficiency = std::min(net, switched / shape.ring_bandwidth);
  cost.ramp_s = std::max(0.0, bytes / switched + ramp_s(bytes, sums.ramp, switched) -
                                  bytes / (cost.efficiency * shape.ring_bandwidth));
  return with_software(cost, shape, protocol);
}

TransferCost collnet_cost(double bytes, const TransferShape& shape, const Protocol& protocol, bool direct) {
  if (shape.ranks < 2) return {};
  TransferCost cost = switched_cost(bytes, shape, protocol);
  if (protocol.kind != Protocol::nccl || shape.compute_capability == 0) return cost;
  const auto arch = nccl::architecture(shape.compute_capability);
  const double others = static_cast<double>(shape.ranks) / shape.nodes - 1;  // in the same node
  double in_node_us = 0;
  if (direct && others > 0) in_node_us = nccl::kCollnetDirectLatencyUs + others * nccl::kCollnetDirectPeerUs;
  if (!direct) in_node_us = others * nccl::kCollnetChainLatencyUs;
  const double net_us = others == 0 ? nccl::kTreeNetLatencyUs[nccl::kSimple]
                        : direct    ? nccl::kCollnetDirectNetLatencyUs
                                    : nccl::kCollnetChainNetLatencyUs;
  cost.protocol = nccl::kProtocols[nccl::kSimple];
  cost.step_latency_s = 1e-6 * (2 * in_node_us + net_us) + 2 * shape.hop_latency_s;
  cost.efficiency = shape.nic_share;
  if (shape.nvlink_bandwidth <= 0 || shape.ring_bandwidth <= 0) return cost;
  // Nodes and the network between them work at the same time, so the slower of the two determines the
  // bandwidth.
  double in_node = nccl::kCollnetShare * nccl::kNvlinkShare[arch] * shape.nvlink_bandwidth;
  if (direct) in_node *= nccl::kCollnetDirectShare[arch];
  cost.efficiency = std::min(cost.efficiency, in_node / shape.ring_bandwidth);
  return cost;
}

double exposed_latency_s(const TransferCost& cost, double bytes_on_an_edge, double inverse_bandwidth,
                         double chunk_bytes) {
  if (chunk_bytes <= 0 || cost.steps == 0) return cost.step_latency_s;
  const double step_bytes = bytes_on_an_edge / cost.steps;
  const double pieces = std::max(1.0, std::ceil(step_bytes / chunk_bytes));
  const double piece_s = step_bytes / pieces / cost.efficiency * inverse_bandwidth;
  return std::max(0.0, cost.step_latency_s - (pieces - 1) * piece_s);
}

TransferCost message_cost(double bytes, const TransferShape& shape, const Protocol& protocol) {
  TransferCost cost;
  cost.steps = 1;
  cost.bytes_per_edge = bytes;
  cost.step_latency_s = shape.hop_latency_s;
  if (protocol.over_tcp()) add_tcp(cost, shape, protocol);
  if (protocol.kind == Protocol::gloo) cost.step_latency_s += gloo::kSegmentLatencyS;
  if (protocol.kind == Protocol::measured)
    add_measured(cost, protocol.links->messages(reach_of(shape)), bytes, 1,
                 shape.ring_bandwidth / std::max(1, shape.channels));
  if (protocol.kind != Protocol::nccl || shape.compute_capability == 0) return cost;
  // Send and receive run the primitives of the Simple protocol: they cost one step of a Simple ring.
  cost.protocol = nccl::kProtocols[nccl::kSimple];
  cost.startup_s = 1e-6 * nccl::kBaseLatencyUs[nccl::kSimple];
  cost.step_latency_s = 1e-6 * (shape.nodes > 1 ? inter_latency_us(nccl::kSimple, shape.hop_latency_s)
                                                : intra_latency_us(nccl::kSimple, shape));
  cost.efficiency = channel_share(shape);
  return cost;
}

}  // namespace rehearse
