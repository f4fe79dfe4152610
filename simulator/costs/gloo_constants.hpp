// What Gloo's ring costs beside the bytes on the links: how it cuts messages, and what its host takes.
//
// Segments: pytorch/gloo, gloo/allreduce.h (kMaxSegmentSize) and gloo/allreduce.cc, ring(), which is what
// PyTorch's ProcessGroupGloo calls for every all-reduce. Times were measured with PyTorch 2.15.0 (CPU) between
// four network namespaces on a bridge, on one AMD EPYC virtual machine of 2 cores, Linux 6.18:
// torch.distributed.all_reduce of fp32 zeros, the least of 40 calls each, links not shaped.
#pragma once

namespace rehearse::gloo {

inline constexpr double kMostSegmentBytes = 1048576;
inline constexpr int kLeastSegments = 2;  // of a rank's share, so that one travels while the other is summed

// From send() on one rank to the end of waitRecv() on the next, for a segment of a few bytes: the receiver
// says that it is ready, the sender sends, and each side wakes a thread.
inline constexpr double kSegmentLatencyS = 100e-6;
// Once a call: it is queued for a worker thread, and its end wakes the thread that waits.
inline constexpr double kCallS = 100e-6;
// Payload that one core adds to what it holds: it reads both and writes the sum.
inline constexpr double kSummedBytesPerS = 6e9;

inline constexpr const char* kSource =
    "pytorch/gloo gloo/allreduce.cc: segments; PyTorch 2.15.0 on one AMD EPYC virtual machine: latency, sums";

}  // namespace rehearse::gloo
