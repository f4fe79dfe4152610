// The constants with which NCCL itself predicts the time of a ring and of its trees.
// Source of all of them: NVIDIA/nccl v2.30.7, src/graph/tuning.cc.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace rehearse::nccl {

// Index of a device's architecture into the tables below: Volta (and older), Ampere, Hopper, Blackwell.
constexpr std::size_t architecture(int compute_capability) {
  return compute_capability >= 100 ? 3 : compute_capability >= 90 ? 2 : compute_capability >= 80 ? 1 : 0;
}

enum ProtocolIndex { kLL, kLL128, kSimple };
inline constexpr std::array<std::string_view, 3> kProtocols = {"LL", "LL128", "Simple"};

// Microseconds, ring, by protocol.
inline constexpr std::array<double, 3> kBaseLatencyUs = {6.6, 14.0, 8.4};
inline constexpr std::array<double, 3> kNvlinkLatencyUs = {0.6, 1.9, 3.4};
inline constexpr std::array<double, 3> kNetLatencyUs = {2.7, 4.0, 14.0};

// What the host adds to a hop inside a node once the network takes part: Intel processors' value (AMD: 2.0);
// the Simple protocol pays it three times.
inline constexpr double kNetOverheadUs = 1.0;

// Share of the graph's bus bandwidth that a ring's payload gets.
inline constexpr std::array<double, 3> kRingEfficiency = {0.5, 0.92, 1.0};

// Most that a channel carries with LL128, bytes/s of bus bandwidth, by architecture. It is used between
// nodes, where a channel is a NIC's. Inside a node NCCL's search cuts NVLink into channels so slow that the
// share above binds first.
inline constexpr std::array<double, 4> kMaxChannelBandwidthLL128 = {20.0e9, 20.0e9, 36.7e9, 40.0e9};

// Most that LL carries, bytes/s of bus bandwidth: by architecture, and by 1, 2 or more nodes. On several
// nodes NCCL takes the row by processor: Volta's for Intel, Ampere's for AMD. As with kNetOverheadUs, Intel
// is assumed.
inline constexpr std::array<std::array<double, 3>, 4> kMaxBandwidthLL = {
    {{39.0e9, 39.0e9, 20.4e9},     // Volta
     {87.7e9, 22.5e9, 19.0e9},     // Ampere
     {141.0e9, 45.0e9, 35.0e9},    // Hopper
     {282.0e9, 90.0e9, 70.0e9}}};  // Blackwell

// The same of a tree.
inline constexpr std::array<double, 3> kTreeBaseLatencyUs = {6.8, 14.0, 8.4};
inline constexpr std::array<double, 3> kTreeNvlinkLatencyUs = {0.6, 1.25, 4.0};
inline constexpr std::array<double, 3> kTreeNetLatencyUs = {5.0, 8.5, 14.0};

// Share of the graph's bus bandwidth that an all-reduce over trees gets; of that LL's share, and LL128's on
// one node and on several; and that of all where each node has one rank.
inline constexpr double kTreeEfficiency = 0.92, kTreeEfficiencyLL = 1 / 3.8;
inline constexpr double kTreeEfficiencyLL128 = 7.0 / 9, kTreeEfficiencyLL128Nodes = 120.0 / 128;
inline constexpr double kTreeEfficiencyOneRankANode = 0.85;

// Most that a channel's trees carry, bytes/s of bus bandwidth: by architecture, and by 1, 2 or more nodes.
// Used as kMaxChannelBandwidthLL128 is.
using ByArchitectureAndNodes = std::array<std::array<double, 3>, 4>;
inline constexpr ByArchitectureAndNodes kMaxChannelBandwidthTree = {
    {{26.5e9, 18.5e9, 10.0e9}, {24.0e9, 23.6e9, 17.8e9}, {38.7e9, 41.4e9, 36.0e9}, {70.0e9, 42.8e9, 24.0e9}}};
inline constexpr ByArchitectureAndNodes kMaxChannelBandwidthTreeLL128 = {{{20.0e9, 20.0e9, 20.0e9},
                                                                          {20.0e9, 20.0e9, 20.0e9},
                                                                          {36.7e9, 36.7e9, 29.0e9},
                                                                          {55.6e9, 31.67e9, 20.0e9}}};

// What is left of a tree's bandwidth for buffers from 64 bytes on, each entry for twice the bytes; all of it
// behind the last.
inline constexpr std::array<std::array<double, 24>, 3> kTreeCorrection = {
    {{1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
      0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
      0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
      0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9}}};

// A tree's piece: the Simple protocol's buffer of 4 MiB has 8 slots (NCCL v2.30.7, src/init.cc and
// src/include/device.h: DEFAULT_BUFFSIZE, NCCL_STEPS).
inline constexpr double kPieceBytes = 4194304.0 / 8;

// The latency of a Simple all-reduce over several nodes grows by this once each rank's share of a channel
// reaches kPlateauBytes.
inline constexpr double kPlateauFactor = 1.4, kPlateauFactorBeforeAmpere = 1.9;
inline constexpr double kPlateauBytes = 64;

// What channels reach on the links, measured. Sources: [LUT] VIA-Research/vTrain
// trace/{a100,v100}/AR_GPU*_LUT (nccl-tests in one node, 2 to 8 GPUs, 1 MiB to 1 GiB); [ML]
// stas00/ml-engineering network/README.md (H200, B200, 8 GiB); [DGXC] NVIDIA/dgxc-benchmarking nccl/README.md
// (DGX H100); [AWS] aws-samples/ awsome-distributed-training micro-benchmarks/nccl-tests/README.md (2 x p5).
// Of tables with many sizes every other row set the constants. Entries by architecture: Volta, Ampere,
// Hopper, Blackwell.
using ByArchitecture = std::array<double, 4>;

// Share of NVLink's wire rate that Simple rings fill with payload [LUT, LUT, ML, ML]. NCCL itself counts with
// 0.80, 0.80, 0.82 and 0.80 (src/graph/topo.h: 20, 20, 20.6 and 40.1 GB/s of a link).
inline constexpr ByArchitecture kNvlinkShare = {0.884, 0.817, 0.828, 0.7745};

// Of a hop that passes through another GPU, on a mesh, as a share of the above [LUT: V100, five GPUs].
inline constexpr double kRelayShare = 0.84;

// At one of its 2 (n-1) steps a ring all-reduce completes a sum, and stores it besides passing it on; that
// step takes so much longer than the others [LUT, LUT, ML, ML].
inline constexpr ByArchitecture kStoreAndSend = {0, 0.372, 0.057, 0.115};

// Until its channels carry their full bandwidth an all-reduce loses the time of so many times
// sqrt(bytes x 1 MB): rings and trees on NVLink [LUT, LUT; Hopper and Blackwell taken as Ampere].
inline constexpr ByArchitecture kRamp = {0, 2.19, 2.19, 2.19};
inline constexpr double kRampBytes = 1e6;

// NVLS: time in microseconds in a node, and of each of the 2 log2(nodes) hops between nodes (NCCL, NVLS and
// NVLSTree). Bandwidth, in bytes of the buffer, as a share of a GPU's NVLinks: this, times 1 - kNvlsOwnShare
// / ranks of a node [DGXC, ML]. Ramps as above, in one node [DGXC, ML] and over several [AWS; ML].
inline constexpr double kNvlsLatencyUs = 25.0, kNvlsTreeNetLatencyUs = 20.9;
inline constexpr ByArchitecture kNvlsShare = {0, 0, 0.681, 0.656};
inline constexpr double kNvlsOwnShare = 0.62;
inline constexpr ByArchitecture kNvlsRamp = {0, 0, 2.49, 9.97};
inline constexpr ByArchitecture kNvlsTreeRamp = {0, 0, 7.8, 9.97};
// The first architecture with NVLS; and the least GPUs of one node with which NCCL prefers it to rings [ML].
inline constexpr int kFirstCapabilityNvls = 90;
inline constexpr std::array<int, 4> kLeastRanksNvls = {0, 0, 5, 6};

// Thread blocks of a collective, one for each of its channels; each keeps a streaming multiprocessor busy.
// NCCL makes two channels of each ring that its search finds (src/graph/connect.cc). In one node over NVLink:
// its logs of 8 A100 (NVIDIA/nccl-tests#100: "Channel 23/24") and 8 H100 ("24 coll channels, 16 nvls
// channels"), and the six rings of 4 V100 (NVIDIA/nccl#713); Blackwell is taken as Hopper. Over PCIe there is
// one ring ("Channel 00/02"). Between nodes a ring carries up to a NIC of 200 Gb/s, and there are up to 16
// channels: with four NICs of 400 Gb/s H100 count them from 0 to 15 (NVIDIA/nccl#1357). NVLS: NCCL v2.28
// src/transport/nvls.cc, NVLS_NCHANNELS_SM90, _SM100_NVL (one node) and _SM100.
inline constexpr double kBlocksOfRing = 2, kMostBlocksBetweenNodes = 16, kRingBetweenNodes = 25e9;  // bytes/s
inline constexpr ByArchitecture kBlocksInNode = {12, 24, 24, 24};
inline constexpr ByArchitecture kBlocksNvls = {0, 0, 16, 24}, kBlocksNvlsTree = {0, 0, 16, 32};

// How often a member's memory is read or written for each byte that passes it on a ring
// (src/device/prims_simple.h): the byte arrives in a buffer, from which it is read, and meets a local operand
// or is stored. Of a message: read by its sender; written to the receiver's buffer, read there and stored.
inline constexpr double kMemoryPasses = 3, kMemoryPassesOfMessages = 4;

// CollNet, Simple protocol, in microseconds: of each hop of a chain in a node; of the exchange of all members
// of a node, once and for each other member; of the network. A node with one member takes a tree's latency.
inline constexpr double kCollnetChainLatencyUs = 2.8;
inline constexpr double kCollnetDirectLatencyUs = 3.7, kCollnetDirectPeerUs = 0.4;
inline constexpr double kCollnetChainNetLatencyUs = 30.0, kCollnetDirectNetLatencyUs = 31.0;
// Share of the nodes' bus bandwidth that the buffer gets, since it passes through a GPU twice; of that, the
// share of CollNetDirect, by architecture.
inline constexpr double kCollnetShare = 0.5;
inline constexpr ByArchitecture kCollnetDirectShare = {1, 1, 0.85, 0.85};

// Share of a NIC's bandwidth that payload gets: NCCL counts 12 GB/s for 100 Gb/s (src/graph/topo.h).
inline constexpr double kNetworkShare = 0.96;

// LL128 needs stores of 128 bytes that NVLink keeps together: Volta and later.
inline constexpr int kFirstCapabilityLL128 = 70;

}  // namespace rehearse::nccl
