// Describes the memory of a rank over one step: what is always allocated, and what is allocated and freed.
#pragma once

#include <array>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

struct MemoryChange {
  double time_s = 0;
  TensorKind kind = TensorKind::activation;
  double bytes = 0;  // negative: freed
};

using BytesByKind = std::array<double, kTensorKindNames.size()>;

struct MemoryTimeline {
  BytesByKind persistent{};           // weights, gradients, optimizer state
  std::vector<MemoryChange> changes;  // by time; at the same time, frees come first
};

// Returns the timeline of the tensors in one kind of memory. Tensors that are not persistent exist from the
// beginning of the first op that writes them to the end of the last one that uses them; a tensor that is read
// before any write comes from the step before and exists from the step's beginning.
MemoryTimeline memory_timeline(const Trace& trace, int rank_class, int step,
                               TensorMemory memory = TensorMemory::device);

// The memory of a rank of a class at its peak.
struct MemoryPeak {
  int rank_class = 0;
  bool server = false;  // the rank is not a worker
  double total = 0;
  BytesByKind by_kind{};
  double update = 0;  // the most from the optimizer's beginning on: without activations
};

// Returns the peaks of a job's last step, by class. A worker's peak includes the fullest server on a device
// of its class: the two peaks need not occur at the same time; the sum is what both have to reserve.
std::vector<MemoryPeak> memory_peaks(const Trace& trace, int job);

}  // namespace rehearse
