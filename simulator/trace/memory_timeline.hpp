// Describes the memory of a rank over one step: what is always allocated, and what is allocated and freed.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "simulator/trace/live_tensors.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse {

struct MemoryChange {
  double time_s = 0;
  TensorKind kind = TensorKind::activation;
  double bytes = 0;        // negative: freed
  std::size_t tensor = 0;  // in LiveTensors::tensors
};

using BytesByKind = std::array<double, kTensorKindNames.size()>;

struct MemoryTimeline {
  BytesByKind persistent{};           // weights, gradients, optimizer state
  std::vector<MemoryChange> changes;  // by time; at the same time, frees come first
};

// Returns the timeline of the tensors in one kind of memory.
MemoryTimeline memory_timeline(const LiveTensors& live);
MemoryTimeline memory_timeline(const Trace& trace, int rank_class, int step,
                               TensorMemory memory = TensorMemory::device);

// The first moment at which a timeline holds most.
struct FullestMoment {
  std::size_t changes = 0;  // that came before it; 0: only what is persistent
  double total = 0;
  BytesByKind by_kind{};
};
FullestMoment fullest_moment(const MemoryTimeline& timeline);

// The memory of a rank of a class at its peak.
struct MemoryPeak {
  int rank_class = 0, step = 0;
  bool server = false;  // the rank is not a worker
  double total = 0;
  BytesByKind by_kind{};
  double update = 0;  // the most from the optimizer's beginning on: without activations
  int beside = -1;    // class of the server on the same device, whose peak is included; -1: none
};

// Returns the peaks of a job's last step, by class. A worker's peak includes the fullest server on a device
// of its class: the two peaks need not occur at the same time; the sum is what both have to reserve.
std::vector<MemoryPeak> memory_peaks(const Trace& trace, int job);
// Returns the peak of the fullest worker; its total is 0 if no memory is known.
MemoryPeak fullest_worker(const std::vector<MemoryPeak>& peaks);

}  // namespace rehearse
