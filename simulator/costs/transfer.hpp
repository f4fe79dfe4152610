// Computes what a transfer costs in addition to its bytes on the links: startup, latency of its hops,
// efficiency.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "simulator/costs/link_profile.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// How payload turns into time on the links.
struct Protocol {
  enum Kind {
    ideal,
    nccl,      // GPUs: NCCL's own cost model; processors: ideal
    tcp,       // between nodes over TCP/IP on Ethernet: headers, no startup; ideal inside nodes
    measured,  // latency and bandwidth by message size, from `links`
    gloo,      // tcp, plus what Gloo's ring adds: segments, handshakes, sums on the host
  } kind = nccl;
  // nccl: whose calls they are, which decides what they cost besides. nccl-tests stands for all that uses
  // NCCL as its tests do.
  enum Software { nccl_tests, xla } software = nccl_tests;
  int only = -1;                             // nccl: an index into nccl::kProtocols; -1: the fastest one
  double frame_overhead_bytes = 38;          // tcp, gloo: bytes that a frame adds to its packet on the link
  std::shared_ptr<const LinkProfile> links;  // for `measured` only

  Protocol(Kind chosen = nccl) : kind(chosen) {}
  bool over_tcp() const { return kind == tcp || kind == gloo; }
};
inline constexpr std::array<std::string_view, 5> kProtocolNames = {"ideal", "nccl", "tcp", "measured",
                                                                   "gloo"};
inline constexpr std::array<std::string_view, 2> kSoftwareNames = {"nccl-tests", "xla"};

// Geometry of a group as a collective sees it.
struct TransferShape {
  int ranks = 2;
  int nodes = 1;              // number of nodes that the group spans
  int channels = 1;           // parallel rings
  double hop_latency_s = 0;   // of the slowest hop's route
  double tree_latency_s = 0;  // trees: of the longest path to the root and back, without protocol costs
  int tree_edges = 0;         // trees: on the longest path up and down
  // Trees: sum of 1 / bandwidth over the slowest path up and down, with each edge alone, and its maximum over
  // all edges.
  double tree_s_per_byte = 0, tree_edge_s_per_byte = 0;
  double ring_bandwidth = 0;    // bytes/s of all channels together, alone on the network
  int compute_capability = 80;  // of the devices: 60 P100, 70 V100, 80 A100, 90 H100; 0: not a GPU
  bool nvlink_only = false;     // one node, and every hop goes over NVLink
  bool relayed = false;         // some hop goes over NVLink through another member, for lack of a direct link
  // With hops over PCIe between devices of a node: bytes/s of PCIe, and the share of it that payload reaches.
  double pcie_bandwidth = 0, pcie_share = 1;
  double nvlink_bandwidth = 0;  // bytes/s of all channels together over the nodes' NVLinks alone; 0: none
  bool rack = false;            // the nodes are racks, whose NVSwitches join more devices than a board has
  double nic_share = 0.96;      // share of a NIC's bandwidth that payload reaches
  bool nic_ordered = true;      // NICs keep the order that LL and LL128 rely on
};

// The cost of a transfer. Its duration alone on the network is startup_s + filling_s + ramp_s + steps *
// step_latency_s + bytes_on_an_edge / (efficiency * bandwidth).
struct TransferCost {
  double startup_s = 0;  // paid once
  double filling_s = 0;  // until all edges of a chain or tree are busy; message tables imply it
  double ramp_s = 0;     // until channels carry their full bandwidth; grows with the square root of the bytes
  double step_latency_s = 0;  // paid in every step
  int steps = 0;              // ring all-reduce: 2(n-1)
  double bytes_per_edge = 0;  // of ALL channels together; ring all-reduce: 2(n-1)/n S
  double efficiency = 1;      // share of the links' bandwidth that payload reaches
  std::string_view protocol;  // "", "LL", "LL128", "Simple"
};

// Returns the cost of a ring collective over `bytes` (see Collective::bytes).
//   ideal: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH"
//     (2005).
//   nccl: NCCL 2.30.7 src/graph/tuning.cc; uses the protocol (LL, LL128, Simple) with the least time.
//   tcp: ideal, with tcp_efficiency() between nodes.
//   measured: each step costs what the profile states for messages of the size of the step's pieces, which
//     are at most `chunk_bytes` (0: a step's entire share; 512 KiB along chains).
//   tcp, measured: the last edge of a chain begins n-2 pieces' time later.
//   gloo: tcp plus gloo_constants.hpp; all-reduces use Gloo's own segments, whatever `chunk_bytes` is.
TransferCost ring_cost(CollectiveKind kind, double bytes, const TransferShape& shape,
                       const Protocol& protocol, double chunk_bytes = 0);

// Returns the cost of an all-reduce of `bytes` over two trees; `ring_bandwidth` is 2 `bytes` divided by their
// time on the links. The path up and down is one step.
//   ideal: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"
//     (2009), with pieces so small that all edges are busy throughout. nccl, tcp: see ring_cost().
//   measured: every edge of the longest path adds the latency of a piece.
//   tcp, measured: each tree carries its half in k pieces. The first piece crosses all edges but one of the
//     slowest path, together with the other tree's piece; each further piece follows after the time that all
//     edges sharing a link need. On a star, with E edges: E-1 times two pieces and k-1 times four, which is
//     E-3 times two pieces more than the time of all bytes.
TransferCost tree_cost(double bytes, const TransferShape& shape, const Protocol& protocol,
                       double chunk_bytes = 0);

// Returns the cost of an all-reduce of `bytes` in which NVSwitches sum and multicast (NVLS); two trees
// connect several nodes (NVLSTree). It counts as one step; `ring_bandwidth` is `bytes` divided by their time
// on the links.
//   nccl: latencies of NCCL 2.30.7 src/graph/tuning.cc; measured bandwidth (nccl_constants.hpp).
//   All other protocols: the bandwidth of the links and the latency of the route.
TransferCost nvls_cost(double bytes, const TransferShape& shape, const Protocol& protocol);

// Returns the cost of an all-reduce of `bytes` over several nodes in which the network's switches sum:
// CollNetDirect if `direct`, otherwise CollNetChain. `ring_bandwidth` is defined as for nvls_cost().
//   nccl: NCCL 2.30.7 src/graph/tuning.cc. Neither a ramp nor a measurement is known. For CollNetChain on
//     DGX A100, this gives 122 GB/s of the buffer with 8 NICs and 96 with 4; an author of NCCL expects some
//     110 and 80 (NVIDIA/nccl issue 320, comment of 2023-01-03).
//   All other protocols: as in nvls_cost().
TransferCost collnet_cost(double bytes, const TransferShape& shape, const Protocol& protocol, bool direct);

// Returns the part of a step's latency that pieces of at most `chunk_bytes` in flight do not hide. A step of
// k pieces takes max(k c, c + latency), where c is the time of a piece: inverse_bandwidth / efficiency times
// a k-th of the step's share of bytes_on_an_edge.
double exposed_latency_s(const TransferCost& cost, double bytes_on_an_edge, double inverse_bandwidth,
                         double chunk_bytes);

// Returns the size of the pieces when `bytes` are split into equal pieces of at most `most` (0: one piece).
double piece_of(double bytes, double most);

// Returns the cost of one message between two ranks.
TransferCost message_cost(double bytes, const TransferShape& shape, const Protocol& protocol);

// Returns the share of an Ethernet's bandwidth that TCP payload reaches in full frames. An MTU of 1,500 bytes
// (IEEE 802.3) holds 20 of IPv4 (RFC 791), 20 of TCP (RFC 9293), 12 of its timestamps (RFC 7323) and 1,448 of
// payload. On the wire a frame adds 38 (IEEE 802.3): preamble 8, header 14, check sequence 4, gap 12; a Linux
// shaper only counts the 14 of the header.
double tcp_efficiency(double frame_overhead_bytes);

}  // namespace rehearse
