// Defines the order in which a pipeline stage runs its micro-batches: one pure function for each schedule,
// and a table of all of them (simulator/scenario/pipeline_schedules.inc).
#pragma once

#include <string_view>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// A micro-batch's pass through one of the stage's model chunks: forward, backward, or one half of a split
// backward pass: backward_input, which the previous stage waits for, or backward_weight, which only the
// optimizer waits for.
struct PassItem {
  Pass pass = Pass::forward;
  int microbatch = 0;
  int chunk = 0;  // index among the stage's model chunks

  bool forward() const { return pass == Pass::forward; }
  bool operator==(const PassItem&) const = default;
};

// A stage and the passes that it has to run.
struct StagePlace {
  int stages = 1, stage = 0, microbatches = 1, chunks = 1;
  bool pairs = false;  // a forward pass and the backward pass after it take turns (overlap_passes)
  int group = 0;       // micro-batches that run through a chunk before the next one; 0: as many as stages

  int group_size() const { return group > 0 ? group : stages; }
};

// Which parts of the model a stage holds.
enum class PartPlacement {
  loop,  // part c * stages + s is chunk c of stage s
  vee,  // even chunks as above, odd ones from the last stage to the first: stage s has s and 2 stages - 1 - s
};

inline constexpr int kMostChunks = 10'000;

struct OrderEntry {
  std::string_view title;  // for headlines: "1F1B"
  std::string_view summary, more,
      keys;  // for `rehearse show`: a line, an explanation, the keys of an example
  PartPlacement placement = PartPlacement::loop;
  int fewest_stages = 1;
  int fewest_chunks = 1, most_chunks = 1;  // per stage
  bool splits_backward = false;
  // Stages s and p - 1 - s of p hold the same parts of the model and do the same work: they count as one
  // stage in `pipeline`, and as two ranks in `data`.
  bool mirrored = false;
  // The first stage finishes a step before the last one does, and begins the next step.
  bool staggered = false;
  // Every stage retains the activations of all micro-batches; with other schedules their number does not
  // grow.
  bool retains_all = false;
  // Micro-batches run through one chunk after the other in groups: see fits_groups().
  bool in_groups = false;
  // Returns the passes of a stage in order.
  std::vector<PassItem> (*order)(const StagePlace& place);
  // Returns the number of forward passes before the first backward pass; null if blocking transfers
  // (strategy.blocking_p2p) would deadlock.
  int (*ahead)(const StagePlace& place);
};

const OrderEntry& order_of(PipelineSchedule schedule);

// Returns whether a schedule can run so many micro-batches: with groups, their number must be a multiple of
// the group, or the rest, which is the last group, at least as many as there are stages (Megatron-LM,
// megatron/core/pipeline_parallel/schedules.py, final_microbatch_group_size).
bool fits_groups(const OrderEntry& order, const StagePlace& place);

// Returns whether, beyond the first ones, each further micro-batch lengthens a step by the same time. It does
// not where all micro-batches run through one chunk before the next: the gradients of a chunk are then sent
// while others compute, which hides more of them the more micro-batches there are.
bool grows_steadily(const StrategyChoice& strategy);

// Returns `ahead` forward passes, then alternating forward and backward passes, then the remaining backward
// passes. forward(place, i) returns the i-th forward pass.
using ItemAt = PassItem (*)(const StagePlace& place, int i);
std::vector<PassItem> alternating_order(const StagePlace& place, int ahead, ItemAt forward, ItemAt backward);

// Returns the passes of a stage in order. The micro-batches must fit the schedule's groups.
std::vector<PassItem> pipeline_order(PipelineSchedule schedule, const StagePlace& place);

// Return the part of the model that is chunk `chunk` of a stage, and the stage that holds a part.
int part_of(PartPlacement placement, int stages, int stage, int chunk);
int stage_of_part(PartPlacement placement, int stages, int part);

}  // namespace rehearse
