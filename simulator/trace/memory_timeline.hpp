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
// beginning.
MemoryTimeline memory_timeline(const Trace& trace, int rank_class, int step);

}  // namespace rehearse
