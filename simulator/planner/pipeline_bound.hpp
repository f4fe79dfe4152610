// Computes lower bounds of the time that a pipeline's passes take, from the times of its parts.
#pragma once

#include <vector>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

// Times of a part of the model for one micro-batch: a stage, or one of its model chunks (virtual stages).
// Recomputation counts towards the backward pass.
struct PartTimes {
  double forward_s = 0, backward_s = 0;                // backward: in one part
  double backward_input_s = 0, backward_weight_s = 0;  // backward in two parts
  double sent_s = 0, sent_bytes = 0;  // of its output to the next stage, alone on the network
  double beside_s = 0;                // collectives that run beside its passes
  double issue_s = 0;                 // time of the process to issue both passes
  double kernels_s = 0;               // both passes, without collectives
  double saved_bytes = 0;
  // Time to sum the part's gradients after each backward pass, on a separate stream, bucket by bucket: a pass
  // writes a bucket's gradients only once those of the previous pass have been sent. 0: not after each pass.
  double scatter_s = 0;
  int buckets = 1;  // maximum number
  double passes_s() const { return forward_s + backward_s; }
};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1, chunks = 1, microbatches = 1;
  bool pairs = false;  // as strategy.overlap_passes
};

// Returns a lower bound, in seconds, for any order that computes a stage's passes one after the other. For
// the stage for which this is longest, it is the sum of the forward passes of the stages before it for the
// first micro-batch, all its own passes, and the backward passes of the stages before it for the last
// micro-batch. A stage of a staggered schedule begins a step when it has ended the previous one, so only its
// own passes count. `more_s`, if given: by stage, the additional time of its passes for all micro-batches.
// Takes about 10 ns per part.
double quick_bound_s(const PipelineShape& shape, const std::vector<PartTimes>& parts,
                     const std::vector<double>& more_s = {});

// When a stage computes if passes run one by one, each after the previous one on its stage and after the pass
// that it waits for. Exact if stages wait for nothing else. Seconds from the beginning of the step.
struct StageSpan {
  double begin_s = 0, end_s = 0;  // of its first and its last pass
  double first_backward_s = 0;    // when its first backward pass begins
  double last_gradients_s = 0;    // when the first backward pass of its last micro-batch begins
};
// Places all passes on a timeline. `limit`: micro-batches beyond this number are not walked, but counted with
// the fastest stage's time for each (0: all are walked).
std::vector<StageSpan> walk_pipeline(const PipelineShape& asked, const std::vector<PartTimes>& parts,
                                     int limit);

// Returns the maximum number of micro-batches of a stage's model chunks that are between their forward and
// their backward pass.
int most_in_flight(const PipelineShape& shape, int stage);

}  // namespace rehearse
