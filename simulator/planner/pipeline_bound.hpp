// Lower bounds of the time that a pipeline's passes take, from the times of its parts.
#pragma once

#include <vector>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

// A part of the model with one micro-batch: a stage, or one of its virtual stages. Recomputation counts to
// the backward pass.
struct PartTimes {
  double forward_s = 0, backward_s = 0;                // backward: whole
  double backward_input_s = 0, backward_weight_s = 0;  // in two parts
  double sent_s = 0, sent_bytes = 0;                   // of its output to the next stage, alone
  double beside_s = 0;                                 // of collectives that run beside its passes
  double issue_s = 0;                                  // of the process, for both passes
  double kernels_s = 0;                                // of both passes, without collectives
  double saved_bytes = 0;
  // Of summing the part's gradients behind each backward pass, on a stream of its own, bucket by bucket: a
  // pass writes a bucket's gradients only once those of the pass before have gone. 0: not behind each.
  double scatter_s = 0;
  int buckets = 1;  // at most
  double passes_s() const { return forward_s + backward_s; }
};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1, chunks = 1, microbatches = 1;
  bool pairs = false;  // strategy.overlap_passes
};

// Seconds that any order takes which computes a stage's passes one after the other: of the stage for which it
// is longest, the forward passes of the stages before it for the first micro-batch, all its own passes, and
// the backward passes of the stages before it for the last one. A stage of a staggered schedule begins a step
// when it has ended the one before: its own passes alone count. `more_s`, if given: by stage, what its passes
// of all micro-batches take besides. In about 10 ns a part.
double quick_bound_s(const PipelineShape& shape, const std::vector<PartTimes>& parts,
                     const std::vector<double>& more_s = {});

// The passes one by one, each behind the one before on its stage and behind the pass that it waits for:
// exact where stages wait for nothing else. Seconds from the beginning of the step.
struct StageSpan {
  double begin_s = 0, end_s = 0;  // of its first and its last pass
  double first_backward_s = 0;    // when its first backward pass begins
  double last_gradients_s = 0;    // when the first backward pass of its last micro-batch begins
};
// `limit`: micro-batches beyond so many are not walked, but counted with the fastest stage's time for each
// (0: all are walked).
std::vector<StageSpan> walk_pipeline(const PipelineShape& shape, const std::vector<PartTimes>& parts,
                                     int limit);

// The most micro-batches of a stage's chunks that lie between their forward and their backward pass.
int most_in_flight(const PipelineShape& shape, int stage);

}  // namespace rehearse
