// Holds the constants with which NCCL predicts the time of rings and trees, and measured ones for what it
// does not model. Source, unless stated otherwise: NVIDIA/nccl v2.30.7, src/graph/tuning.cc.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace rehearse::nccl {

// Returns the index of a device's architecture into the tables below: Volta (and older), Ampere, Hopper,
// Blackwell.
constexpr std::size_t architecture(int compute_capability) {
  return compute_capability >= 100 ? 3 : compute_capability >= 90 ? 2 : compute_capability >= 80 ? 1 : 0;
}

enum ProtocolIndex { kLL, kLL128, kSimple };
inline constexpr std::array<std::string_view, 3> kProtocols = {"LL", "LL128", "Simple"};

// Latencies of rings in microseconds, by protocol.
inline constexpr std::array<double, 3> kBaseLatencyUs = {6.6, 14.0, 8.4};
inline constexpr std::array<double, 3> kNvlinkLatencyUs = {0.6, 1.9, 3.4};
inline constexpr std::array<double, 3> kNetLatencyUs = {2.7, 4.0, 14.0};

// Latency that the host adds to a hop inside a node once the network takes part, for Intel processors (AMD:
// 2.0). The Simple protocol pays it three times.
inline constexpr double kNetOverheadUs = 1.0;

// Share of the graph's bus bandwidth that a ring's payload reaches, by protocol.
inline constexpr std::array<double, 3> kRingEfficiency = {0.5, 0.92, 1.0};

// Maximum bus bandwidth of a channel with LL128, bytes/s, by architecture. It applies between nodes, where
// each channel uses one NIC. Inside a node, NCCL's search divides NVLink into channels so slow that the share
// above is the tighter limit.
inline constexpr std::array<double, 4> kMaxChannelBandwidthLL128 = {20.0e9, 20.0e9, 36.7e9, 40.0e9};

// Maximum bus bandwidth of LL, bytes/s, by architecture, and by 1, 2 or more nodes. On several nodes NCCL
// chooses the row by processor: Volta's for Intel, Ampere's for AMD. As with kNetOverheadUs, Intel is
// assumed.
inline constexpr std::array<std::array<double, 3>, 4> kMaxBandwidthLL = {
    {{39.0e9, 39.0e9, 20.4e9},     // Volta
     {87.7e9, 22.5e9, 19.0e9},     // Ampere
     {141.0e9, 45.0e9, 35.0e9},    // Hopper
     {282.0e9, 90.0e9, 70.0e9}}};  // Blackwell

// Latencies of trees in microseconds, by protocol.
inline constexpr std::array<double, 3> kTreeBaseLatencyUs = {6.8, 14.0, 8.4};
inline constexpr std::array<double, 3> kTreeNvlinkLatencyUs = {0.6, 1.25, 4.0};
inline constexpr std::array<double, 3> kTreeNetLatencyUs = {5.0, 8.5, 14.0};

// Share of the graph's bus bandwidth that an all-reduce over trees reaches. Factors on it: for LL, for LL128
// on one node and on several nodes, and for all protocols if every node has one rank.
inline constexpr double kTreeEfficiency = 0.92, kTreeEfficiencyLL = 1 / 3.8;
inline constexpr double kTreeEfficiencyLL128 = 7.0 / 9, kTreeEfficiencyLL128Nodes = 120.0 / 128;
inline constexpr double kTreeEfficiencyOneRankANode = 0.85;

// Maximum bus bandwidth of a channel's trees, bytes/s, by architecture, and by 1, 2 or more nodes. Used in
// the same way as kMaxChannelBandwidthLL128.
using ByArchitectureAndNodes = std::array<std::array<double, 3>, 4>;
inline constexpr ByArchitectureAndNodes kMaxChannelBandwidthTree = {
    {{26.5e9, 18.5e9, 10.0e9}, {24.0e9, 23.6e9, 17.8e9}, {38.7e9, 41.4e9, 36.0e9}, {70.0e9, 42.8e9, 24.0e9}}};
inline constexpr ByArchitectureAndNodes kMaxChannelBandwidthTreeLL128 = {{{20.0e9, 20.0e9, 20.0e9},
                                                                          {20.0e9, 20.0e9, 20.0e9},
                                                                          {36.7e9, 36.7e9, 29.0e9},
                                                                          {55.6e9, 31.67e9, 20.0e9}}};

// Factors on a tree's bandwidth, by protocol. The first entry is for buffers of 64 bytes, each further one
// for twice the bytes of the one before; beyond the last one the factor is 1.
inline constexpr std::array<std::array<double, 24>, 3> kTreeCorrection = {
    {{1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
      0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
      0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
      0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9}}};

// Size of a tree's piece: the Simple protocol's buffer of 4 MiB has 8 slots (NCCL v2.30.7, src/init.cc and
// src/include/device.h: DEFAULT_BUFFSIZE, NCCL_STEPS).
inline constexpr double kPieceBytes = 4194304.0 / 8;

// Factor on the latency of a Simple all-reduce over several nodes once each rank's share of a channel reaches
// kPlateauBytes.
inline constexpr double kPlateauFactor = 1.4, kPlateauFactorBeforeAmpere = 1.9;
inline constexpr double kPlateauBytes = 64;

// Measured bandwidths of channels. Sources: [LUT] VIA-Research/vTrain trace/{a100,v100}/AR_GPU*_LUT
// (nccl-tests in one node, 2 to 8 GPUs, 1 MiB to 1 GiB); [ML] stas00/ml-engineering network/README.md (H200,
// B200, 8 GiB); [DGXC] NVIDIA/dgxc-benchmarking nccl/README.md (DGX H100); [AWS]
// aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/README.md (2 x p5). Where a table has
// many sizes, the constants were set by every other row. Entries are by architecture: Volta, Ampere, Hopper,
// Blackwell.
using ByArchitecture = std::array<double, 4>;

// Share of NVLink's wire rate that Simple rings fill with payload [LUT, LUT, ML, ML]. NCCL itself assumes
// 0.80, 0.80, 0.82 and 0.80 (src/graph/topo.h: 20, 20, 20.6 and 40.1 GB/s per link).
inline constexpr ByArchitecture kNvlinkShare = {0.884, 0.817, 0.828, 0.7745};

// Factor on the share above for a hop that passes through another GPU, on a mesh [LUT: V100, five GPUs].
inline constexpr double kRelayShare = 0.84;

// In one of its 2 (n-1) steps, a ring all-reduce completes a sum and stores it in addition to passing it on.
// That step takes longer than the others by this fraction [LUT, LUT, ML, ML].
inline constexpr ByArchitecture kStoreAndSend = {0, 0.372, 0.057, 0.115};

// Until its channels reach their full bandwidth, an all-reduce loses the time in which it would carry this
// many times sqrt(bytes x 1 MB): rings and trees on NVLink [LUT, LUT; Hopper and Blackwell are assumed to
// equal Ampere].
inline constexpr ByArchitecture kRamp = {0, 2.19, 2.19, 2.19};
inline constexpr double kRampBytes = 1e6;

// NVLS latency in microseconds: inside a node, and for each of the 2 log2(nodes) hops between nodes (NCCL,
// NVLS and NVLSTree). NVLS bandwidth, in bytes of the buffer, as a share of a GPU's NVLinks: kNvlsShare * (1
// - kNvlsOwnShare / ranks per node) [DGXC, ML]. Ramps as above, in one node [DGXC, ML] and over several [AWS;
// ML].
inline constexpr double kNvlsLatencyUs = 25.0, kNvlsTreeNetLatencyUs = 20.9;
inline constexpr ByArchitecture kNvlsShare = {0, 0, 0.681, 0.656};
inline constexpr double kNvlsOwnShare = 0.62;
inline constexpr ByArchitecture kNvlsRamp = {0, 0, 2.49, 9.97};
inline constexpr ByArchitecture kNvlsTreeRamp = {0, 0, 7.8, 9.97};
// The first architecture with NVLS, and the smallest number of GPUs in one node for which NCCL prefers NVLS
// to rings [ML].
inline constexpr int kFirstCapabilityNvls = 90;
inline constexpr std::array<int, 4> kLeastRanksNvls = {0, 0, 5, 6};

// Thread blocks of a collective: one for each of its channels, each occupying one streaming multiprocessor.
// NCCL makes two channels of each ring that its search finds (src/graph/connect.cc). In one node over NVLink,
// the numbers come from its logs for 8 A100 (NVIDIA/nccl-tests#100: "Channel 23/24") and 8 H100 ("24 coll
// channels, 16 nvls channels"), and from the six rings of 4 V100 (NVIDIA/nccl#713); Blackwell is assumed to
// equal Hopper. Over PCIe there is one ring ("Channel 00/02"). Between nodes, a ring carries up to the
// bandwidth of a 200 Gb/s NIC, and there are at most 16 channels: with four NICs of 400 Gb/s, H100 logs count
// them from 0 to 15 (NVIDIA/nccl#1357). NVLS: NCCL v2.28 src/transport/nvls.cc, NVLS_NCHANNELS_SM90,
// _SM100_NVL (one node) and _SM100.
inline constexpr double kBlocksOfRing = 2, kMostBlocksBetweenNodes = 16, kRingBetweenNodes = 25e9;  // bytes/s
inline constexpr ByArchitecture kBlocksInNode = {12, 24, 24, 24};
inline constexpr ByArchitecture kBlocksNvls = {0, 0, 16, 24}, kBlocksNvlsTree = {0, 0, 16, 32};

// Number of times that a member's memory is read or written for each byte that passes the member on a ring
// (src/device/prims_simple.h): the byte arrives in a buffer, is read from there, and is combined with a local
// operand or stored. For a message: it is read by the sender, written to the receiver's buffer, read there
// and stored.
inline constexpr double kMemoryPasses = 3, kMemoryPassesOfMessages = 4;

// XLA's own measurements on boards (xla-collectives.csv) against those of NCCL's tests: what its calls take
// longer, which grows with neither size nor number of GPUs, and the share of the bandwidth that two and eight
// GPUs reach, of which the cause is not known. On racks there is no difference. Set by every other row.
inline constexpr ByArchitecture kXlaStartupUs = {0, 0, 7, 12};
inline constexpr ByArchitecture kXlaShareOfTwo = {1, 1, 0.80, 0.74}, kXlaShareOfEight = {1, 1, 0.96, 0.90};

// CollNet latencies with the Simple protocol, in microseconds: of each hop of a chain inside a node; of the
// exchange between all members of a node, once and for each other member; of the network. A node with one
// member has the latency of a tree.
inline constexpr double kCollnetChainLatencyUs = 2.8;
inline constexpr double kCollnetDirectLatencyUs = 3.7, kCollnetDirectPeerUs = 0.4;
inline constexpr double kCollnetChainNetLatencyUs = 30.0, kCollnetDirectNetLatencyUs = 31.0;
// Share of the nodes' bus bandwidth that the buffer reaches, since it passes through a GPU twice; and the
// factor on it for CollNetDirect, by architecture.
inline constexpr double kCollnetShare = 0.5;
inline constexpr ByArchitecture kCollnetDirectShare = {1, 1, 0.85, 0.85};

// A ring over several nodes with several GPUs each waits for the slowest of its hops, step by step, so that
// it loses this share of its bandwidth with each doubling of the nodes beyond two. Fitted to 4, 16 and 64
// nodes of 8 H100 on NVIDIA/nccl issue 1229: 360, 320 and 280 GB/s of a reduce-scatter; 8, 32 and 128 nodes
// (345, 300 and 260) set nothing. The size is not printed; 8 GiB is assumed.
inline constexpr double kRingLoss = 0.044;
inline constexpr int kFirstCapabilityRingLoss = 90;

// NICs that do not keep order (EFA with the SENDRECV protocol of aws-ofi-nccl; src/platform-aws.cpp makes
// NCCL use Simple alone there). Messages beyond a few KiB wait for a rendezvous: microseconds each way, set
// by an all-reduce of 32 KiB on two p4de, 63 us slower than of 8 KiB. Until a tree over several nodes is
// filled, each of its edges carries one piece of kPieceBytes: inside a node at the rate of a channel (20
// GB/s, see kMaxChannelBandwidthLL128), between nodes at a channel's share of the NICs.
inline constexpr double kRendezvousUs = 31, kLeastRendezvousBytes = 24576;
inline constexpr double kChannelInNode = 20e9;

// Copies between GPUs that cannot reach each other's memory pass through the host's: bytes/s of one copy, and
// the share of the host memory's bandwidth that all copies together reach, each of which writes and reads it.
// NVIDIA/nccl issue 1639: rings of 4 and 8 RTX 5090 on two Xeon 8480+ with 614 GB/s reach 35 and 28 GB/s.
inline constexpr double kHostCopyBandwidth = 35e9, kHostMemoryShare = 0.73;

// NVSwitches of a board join up to this many GPUs. Since Blackwell, those of a rack join up to 72
// (nccl_rack.hpp).
inline constexpr int kMostDevicesOfBoard = 8, kFirstCapabilityRack = 100;

// LL128 needs 128-byte stores that NVLink does not split: Volta and later.
inline constexpr int kFirstCapabilityLL128 = 70;

}  // namespace rehearse::nccl
