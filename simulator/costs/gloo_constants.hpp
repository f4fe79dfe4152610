// Defines what Gloo's ring costs beyond the bytes on the links: how it cuts messages, and the time of its
// host.
//
// Segments: pytorch/gloo, gloo/allreduce.h (kMaxSegmentSize) and gloo/allreduce.cc, ring(), which PyTorch's
// ProcessGroupGloo calls for every all-reduce. Times were measured with PyTorch 2.15.0 (PyPI, on processors)
// on an AMD EPYC virtual machine with 2 cores that others used too, Linux 6.18.
#pragma once

namespace rehearse::gloo {

inline constexpr double kMostSegmentBytes = 1048576;
inline constexpr int kLeastSegments = 2;  // per rank's share, so that one travels while the other is summed

// kSegmentLatencyS: from send() on one rank to the end of waitRecv() on the next, for a segment of a few
// bytes. The receiver reports that it is ready, the sender sends, and each side wakes a thread. kCallS: once
// per call, which is queued for a worker thread and at its end wakes the thread that waits.
// torch.distributed.all_reduce of 64 bytes between two network namespaces takes one call and two arrivals: at
// least 0.26 ms, 0.42 ms in the median of 200. How this time is divided between call and arrivals is a guess.
// (Three and four ranks share the two cores: at least 0.90 and 2.0 ms, for four and six arrivals.)
inline constexpr double kSegmentLatencyS = 100e-6;
inline constexpr double kCallS = 100e-6;
// Payload that one core adds to its own data per second: it reads both operands and writes the sum. torch.add
// of 16 MiB of fp32 on one thread: 6.2 GB/s in the median of 9, 6.9 at best.
inline constexpr double kSummedBytesPerS = 6e9;

inline constexpr const char* kSource =
    "pytorch/gloo gloo/allreduce.cc: segments; PyTorch 2.15.0 on one AMD EPYC virtual machine: latency, sums";

}  // namespace rehearse::gloo
