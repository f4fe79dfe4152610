// Declares the part of NCCL's profiler plugin interface, version 2, that reports collectives (NCCL 2.24 to
// 2.30; in its sources, src/include/plugin/profiler/profiler_v2.h; NCCL's own headers do not declare it).
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>

namespace rehearse {

// Event types, which are also the bits of the mask
inline constexpr int kNcclProfileGroup = 1, kNcclProfileColl = 2;

struct NcclProfilerEvent {
  std::uint8_t type;
  void* parent;
  int rank;
  struct Collective {
    const char* communicator_name;
    std::uint64_t communicator_hash, number;
    const char* function;  // "AllReduce"
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* type;  // "ncclFloat32"
    std::size_t traffic_bytes;
    std::uint8_t most_channels, warps;
    const char* algorithm;  // "RING"
    const char* protocol;   // "LL128"
  } collective;             // for kNcclProfileColl; other events have other members here
};

struct NcclProfiler {
  const char* name;
  ncclResult_t (*init)(void** context, int* mask);
  ncclResult_t (*start_event)(void* context, void** handle, NcclProfilerEvent* event);
  ncclResult_t (*stop_event)(void* handle);
  ncclResult_t (*record_event_state)(void* handle, int state, void* arguments);
  ncclResult_t (*finalize)(void* context);
};

}  // namespace rehearse
