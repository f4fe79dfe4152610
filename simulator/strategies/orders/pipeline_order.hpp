// In which order a pipeline stage runs its micro-batches.
#pragma once

#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct PassItem {
  bool forward = true;
  int microbatch = 0;
  int chunk = 0;  // of the stage's model parts; one alone unless interleaved
};

// gpipe: all forward passes, then all backward passes (Huang et al., NeurIPS 2019).
// 1f1b: PipeDream-flush (Narayanan et al., SC 2021): stage s of p runs p-s-1 forward passes ahead, then one
// forward and one backward in turn, so that it never keeps more than p-s micro-batches.
// interleaved: 1F1B over v chunks a stage (Narayanan et al., SC 2021, figure 4; Megatron-LM's
// forward_backward_pipelining_with_interleaving): p micro-batches run through chunk 0, then through chunk 1,
// ..., then the next p; backward from the last chunk to the first. Stage s runs 2(p-s-1) + (v-1)p passes
// ahead. `microbatches` must be a multiple of `stages`.
std::vector<PassItem> pipeline_order(PipelineSchedule schedule, int stages, int stage, int microbatches,
                                     int chunks = 1);

// Forward passes before the first pair of a forward and a backward pass; at most all of them.
int warm_up_passes(PipelineSchedule schedule, int stages, int stage, int microbatches, int chunks = 1);

}  // namespace rehearse
