// What a transfer costs besides its bytes on the links: startup, latency of its hops, efficiency.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "simulator/costs/link_profile.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// How payload becomes time on the links.
struct Protocol {
  enum Kind {
    ideal,
    nccl,      // GPUs: NCCL's own cost model; processors: ideal
    tcp,       // between nodes over TCP/IP on Ethernet: headers, no startup; inside nodes ideal
    measured,  // latency and bandwidth by the size of a message: `links`
    gloo,      // tcp, and what Gloo's ring does on it: segments, handshakes, sums on the host
  } kind = nccl;
  double frame_overhead_bytes = 38;          // tcp, gloo: what a frame costs on the link besides the packet
  std::shared_ptr<const LinkProfile> links;  // measured

  Protocol(Kind chosen = nccl) : kind(chosen) {}
  bool over_tcp() const { return kind == tcp || kind == gloo; }
};
inline constexpr std::array<std::string_view, 5> kProtocolNames = {"ideal", "nccl", "tcp", "measured",
                                                                   "gloo"};

// Geometry of a group as a collective sees it.
struct TransferShape {
  int ranks = 2;
  int nodes = 1;              // spanned
  int channels = 1;           // rings side by side
  double hop_latency_s = 0;   // of the slowest hop's route
  double tree_latency_s = 0;  // trees: of the longest way to the root and of that back, without costs
  int tree_edges = 0;         // trees: on the longest way up and down
  // Trees: 1 / bandwidth of the edges, each alone: their sum on the slowest way up and down, and the most.
  double tree_s_per_byte = 0, tree_edge_s_per_byte = 0;
  double ring_bandwidth = 0;    // bytes/s of all channels together, alone on the network
  int compute_capability = 80;  // of the devices: 60 P100, 70 V100, 80 A100, 90 H100; 0: not a GPU
  bool nvlink_only = false;     // one node, and every hop goes over NVLink
  bool relayed = false;         // some hop goes over NVLink through another member, which has no other way
  double nvlink_bandwidth = 0;  // bytes/s of all channels together over the nodes' NVLinks alone; 0: none
};

// duration alone on the network = startup_s + filling_s + ramp_s + steps * step_latency_s + bytes_on_an_edge
// / (efficiency * bandwidth)
struct TransferCost {
  double startup_s = 0;  // paid once
  double filling_s = 0;  // until all edges of a chain or tree are busy; message by message it comes by itself
  double ramp_s = 0;     // until channels carry their full bandwidth; grows with the square root of the bytes
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
//   tcp: ideal, at tcp_efficiency() between nodes. measured: each step costs what the profile says of
//   messages as large as the step's pieces are, of which none is larger than `chunk_bytes` (0: a step's whole
//   share; along chains 512 KiB). Both: the last edge of a chain begins n-2 pieces' time later.
//   gloo: tcp, and gloo_constants.hpp; all-reduces go in Gloo's own segments, whatever `chunk_bytes` says.
TransferCost ring_cost(CollectiveKind kind, double bytes, const TransferShape& shape,
                       const Protocol& protocol, double chunk_bytes = 0);

// An all-reduce of `bytes` over two trees, `ring_bandwidth` being 2 `bytes` over its time on the links. One
// step: the way up and down.
//   ideal: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"
//   (2009), cut so finely that all edges are busy throughout. nccl, tcp: as ring_cost().
//   measured: every edge of the longest way adds the latency of a piece.
//   tcp, measured: of k pieces of a tree's half, the first goes along all edges of the slowest way but one,
//   the other tree's beside it, and each other one comes the time later that all edges share a link for. On a
//   star, of E edges: E-1 times two pieces and k-1 times four, which is E-3 times two more than all the bytes
//   take.
TransferCost tree_cost(double bytes, const TransferShape& shape, const Protocol& protocol,
                       double chunk_bytes = 0);

// An all-reduce of `bytes` in which NVLink switches sum and multicast (NVLS); several nodes are joined by two
// trees (NVLSTree). It counts as one step; `ring_bandwidth` is `bytes` divided by their time on the links.
//   nccl: latencies of NCCL 2.30.7 src/graph/tuning.cc; measured bandwidth (nccl_constants.hpp).
//   All other protocols: the bandwidth of the links and the latency of the route.
TransferCost nvls_cost(double bytes, const TransferShape& shape, const Protocol& protocol);

// An all-reduce of `bytes` over several nodes in which the network's switches sum (CollNetDirect where
// `direct`, else CollNetChain), `ring_bandwidth` as for nvls_cost().
//   nccl: NCCL 2.30.7 src/graph/tuning.cc. No ramp is known, nor a measurement: of CollNetChain on DGX A100,
//   122 GB/s of the buffer with 8 NICs and 96 with 4, an author of NCCL expects some 110 and 80 (NVIDIA/nccl
//   issue 320, comment of 2023-01-03).
//   All other protocols: as nvls_cost().
TransferCost collnet_cost(double bytes, const TransferShape& shape, const Protocol& protocol, bool direct);

// The part of a step's latency that pieces of at most `chunk_bytes` in flight do not hide: a step of k pieces
// takes max(k c, c + latency), c being the time of a piece, bytes_on_an_edge * inverse_bandwidth / k.
double exposed_latency_s(const TransferCost& cost, double bytes_on_an_edge, double inverse_bandwidth,
                         double chunk_bytes);

// The size of equal pieces of `bytes` of which none is larger than `most` (0: one piece).
double piece_of(double bytes, double most);

// One message between two ranks.
TransferCost message_cost(double bytes, const TransferShape& shape, const Protocol& protocol);

// Share of an Ethernet's bandwidth that TCP payload gets in full frames. An MTU of 1,500 bytes (IEEE 802.3)
// holds 20 of IPv4 (RFC 791), 20 of TCP (RFC 9293), 12 of its timestamps (RFC 7323) and 1,448 of payload. On
// the wire a frame adds 38 (IEEE 802.3): preamble 8, header 14, check sequence 4, gap 12; a Linux shaper
// counts the header's 14 only.
double tcp_efficiency(double frame_overhead_bytes);

}  // namespace rehearse
