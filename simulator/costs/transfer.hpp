// What a transfer costs besides its bytes on the links: startup, latency of its hops, efficiency.
#pragma once

#include <array>
#include <string_view>

#include "simulator/schedule/op.hpp"

namespace rehearse {

enum class Protocol { ideal, nccl };
inline constexpr std::array<std::string_view, 2> kProtocolNames = {"ideal", "nccl"};

// Geometry of a group as a collective sees it.
struct TransferShape {
  int ranks = 2;
  int nodes = 1;                // spanned
  int channels = 1;             // rings side by side
  double hop_latency_s = 0;     // of the slowest hop's route
  double tree_latency_s = 0;    // trees: of the longest way to the root and of that back, without costs
  double ring_bandwidth = 0;    // bytes/s of all channels together, alone on the network
  int compute_capability = 80;  // of the devices: 60 P100, 70 V100, 80 A100, 90 H100; 0: not a GPU
};

// duration alone on the network = startup_s + steps * step_latency_s + bytes_on_an_edge / (efficiency *
// bandwidth)
struct TransferCost {
  double startup_s = 0;       // paid once
  double step_latency_s = 0;  // paid at every step
  int steps = 0;              // ring all-reduce: 2(n-1)
  double bytes_per_edge = 0;  // of ALL channels together; ring all-reduce: 2(n-1)/n S
  double efficiency = 1;      // share of the links' bandwidth that payload gets
  std::string_view protocol;  // "", "LL", "LL128", "Simple"
};

// A ring collective over `bytes` (see Collective::bytes).
//   ideal: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH"
//   (2005). nccl:  NCCL 2.30.7 src/graph/tuning.cc: the protocol (LL, LL128, Simple) with the least time is
//   taken.
TransferCost ring_cost(CollectiveKind kind, double bytes, const TransferShape& shape, Protocol protocol);

// An all-reduce of `bytes` over two trees, `ring_bandwidth` being 2 `bytes` over its time on the links. One
// step: the way up and down.
//   ideal: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"
//   (2009), cut so finely that all edges are busy throughout. nccl: as ring_cost().
TransferCost tree_cost(double bytes, const TransferShape& shape, Protocol protocol);

// The part of a step's latency that pieces of at most `chunk_bytes` in flight do not hide: a step of k pieces
// takes max(k c, c + latency), c being the time of a piece, bytes_on_an_edge * inverse_bandwidth / k.
double exposed_latency_s(const TransferCost& cost, double bytes_on_an_edge, double inverse_bandwidth,
                         double chunk_bytes);

// One message between two ranks.
TransferCost message_cost(double bytes, const TransferShape& shape, Protocol protocol);

}  // namespace rehearse
