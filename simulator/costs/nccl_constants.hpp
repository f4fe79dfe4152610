// The constants with which NCCL itself predicts a ring's time.
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

// The latency of a Simple all-reduce over several nodes grows by this once each rank's share of a channel
// reaches kPlateauBytes.
inline constexpr double kPlateauFactor = 1.4, kPlateauFactorBeforeAmpere = 1.9;
inline constexpr double kPlateauBytes = 64;

// LL128 needs stores of 128 bytes that NVLink keeps together: Volta and later.
inline constexpr int kFirstCapabilityLL128 = 70;

}  // namespace rehearse::nccl
