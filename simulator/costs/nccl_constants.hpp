// The constants with which NCCL itself predicts the time of a ring and of its trees.
// Source of all of them: NVIDIA/nccl v2.30.7, src/graph/tuning.cc.
#pragma once

#include <array>
#include <string_view>

namespace rehearse::nccl {

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

// LL128 needs stores of 128 bytes that NVLink keeps together: Volta and later.
inline constexpr int kFirstCapabilityLL128 = 70;

}  // namespace rehearse::nccl
