// Finds the tensors that a rank holds in a step: the bytes of each, and from when until when it is live.
#pragma once

#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// A tensor in the memory of a rank. Persistent tensors are live throughout a step. Others are live from the
// beginning of the first op that writes them to the end of the last one that uses them; a tensor that is read
// before any write comes from the step before, and is live from the step's beginning.
struct LiveTensor {
  int tensor = 0;  // of the program
  double bytes = 0;
  bool persistent = false;
  double born_s = 0, freed_s = 0;  // in the trace's time; of persistent ones: the step's beginning and end
  int born_in = -1;                // the op that writes it first; -1: it is live before the step
  int freed_in = -1;               // the op that uses it last; -1: it is live after the step
};

struct LiveTensors {
  const Program* program = nullptr;  // null: the rank ran no op in the step
  double begin_s = 0, end_s = 0;     // of the step, on this rank
  std::vector<LiveTensor> tensors;   // that are used or persistent, in the order of the program
};

LiveTensors live_tensors(const Trace& trace, int rank_class, int step,
                         TensorMemory memory = TensorMemory::device);

}  // namespace rehearse
