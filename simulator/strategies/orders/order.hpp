// In which order a pipeline stage runs its micro-batches: one pure function for each schedule, and a table of
// all.
#pragma once

#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct PassItem {
  bool forward = true;
  int microbatch = 0;
  int chunk = 0;  // of the stage's model parts; one alone unless interleaved
};

// A stage and what it has to run.
struct StagePlace {
  int stages = 1, stage = 0, microbatches = 1, chunks = 1;
};

struct OrderEntry {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  // Forward passes before the first pair of a forward and a backward pass; at most all of them.
  int (*ahead)(const StagePlace& place);
  // The i-th pass of a direction.
  PassItem (*item)(const StagePlace& place, bool forward, int i);
};

// gpipe.cpp, one_f_one_b.cpp, interleaved.cpp.
const OrderEntry& order_of(PipelineSchedule schedule);

// The passes of a stage: those ahead, then one forward and one backward in turn, then the backward passes
// that are left. `microbatches` must be a multiple of `stages` where there are several chunks.
std::vector<PassItem> pipeline_order(PipelineSchedule schedule, int stages, int stage, int microbatches,
                                     int chunks = 1);
int warm_up_passes(PipelineSchedule schedule, int stages, int stage, int microbatches, int chunks = 1);

}  // namespace rehearse
