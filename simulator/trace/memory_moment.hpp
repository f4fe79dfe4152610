// Tells which tensors fill a device at one moment of a step: at its peak, or at any other.
#pragma once

#include <vector>

#include "simulator/trace/memory_timeline.hpp"

namespace rehearse {

struct MemoryMoment {
  int rank_class = 0;
  const Program* program = nullptr;  // null: nothing is known
  double time_s = 0;                 // since the rank began the step
  int op = -1;  // of the program: the one whose tensors make the peak, or that runs then; -1: none
  double bytes = 0;
  std::vector<LiveTensor> tensors;  // the largest first; their times too are since the rank began the step
};

// Returns what is live after the first `changes` changes of the timeline of these tensors.
MemoryMoment moment_after(const LiveTensors& live, const MemoryTimeline& timeline, std::size_t changes);

// Returns the first moment of a step at which a rank of the class holds most.
MemoryMoment peak_moment(const Trace& trace, int rank_class, int step);

// Returns the peak of a job's fullest worker, which memory_use() counts. If a server on the same device is
// included there, its own peak follows as the second one. Empty if no memory is known.
std::vector<MemoryMoment> fullest_device(const Trace& trace, int job);

}  // namespace rehearse
