// Memory of a rank over one step: what always lies there, and what comes and goes.
#pragma once

#include <array>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

struct MemoryChange {
  double time_s = 0;
  TensorKind kind = TensorKind::activation;
  double bytes = 0;  // below zero: freed
};

using BytesByKind = std::array<double, kTensorKindNames.size()>;

struct MemoryTimeline {
  BytesByKind persistent{};           // weights, gradients, optimizer state
  std::vector<MemoryChange> changes;  // by time; at one instant what is freed comes first
};

// Other tensors live from the begin of the first op that writes them to the end of the last one that uses
// them; one that is read before anything wrote it came from the step before and is there from the step's
// beginning. Of the tensors in one memory.
MemoryTimeline memory_timeline(const Trace& trace, int rank_class, int step,
                               TensorMemory memory = TensorMemory::device);

// What a rank of a class holds when it holds the most.
struct MemoryPeak {
  int rank_class = 0;
  bool server = false;  // it is no worker
  double total = 0;
  BytesByKind by_kind{};
};

// Of the last step of a job, by class. A worker's counts the fullest server on a device of its class as well:
// the two peaks need not come at the same time; the sum is what both have to reserve.
std::vector<MemoryPeak> memory_peaks(const Trace& trace, int job);

}  // namespace rehearse
