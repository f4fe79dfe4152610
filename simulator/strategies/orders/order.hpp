// In which order a pipeline stage runs its micro-batches: one pure function for each schedule, and a table of
// all.
#pragma once

#include <string_view>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// A micro-batch's pass through one of the stage's model parts: forward, backward, or one half of a backward
// pass that is split: backward_input, which the stage before waits for, and backward_weight, for which nobody
// waits but the optimizer.
struct PassItem {
  Pass pass = Pass::forward;
  int microbatch = 0;
  int chunk = 0;  // of the stage's model parts

  bool forward() const { return pass == Pass::forward; }
  bool operator==(const PassItem&) const = default;
};

// A stage and what it has to run.
struct StagePlace {
  int stages = 1, stage = 0, microbatches = 1, chunks = 1;
  bool pairs = false;  // a forward pass and the backward pass behind it take turns (overlap_passes)
};

// Which parts of the model a stage holds.
enum class PartPlacement {
  loop,  // part c * stages + s is chunk c of stage s
  vee,  // even chunks as above, odd ones from the last stage to the first: stage s has s and 2 stages - 1 - s
};

inline constexpr int kMostChunks = 10'000;

struct OrderEntry {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::string_view title;  // for headlines: "1F1B"
  PartPlacement placement = PartPlacement::loop;
  int fewest_stages = 1;
  int fewest_chunks = 1, most_chunks = 1;  // of a stage
  bool splits_backward = false;
  // Stages s and p - 1 - s of p hold the same parts of the model and do the same: in `pipeline` they count as
  // one, and in `data` as two.
  bool mirrored = false;
  // The first stage is done with a step before the last one is, and begins the next.
  bool staggered = false;
  // The passes of a stage.
  std::vector<PassItem> (*order)(const StagePlace& place);
  // Forward passes before the first backward pass; null where transfers cannot hold up the computation
  // (strategy.blocking_p2p) without a deadlock.
  int (*ahead)(const StagePlace& place);
};

const OrderEntry& order_of(PipelineSchedule schedule);

// `ahead` forward passes, then one forward and one backward in turn, then the backward passes that are left.
// forward(place, i): the i-th forward pass.
using ItemAt = PassItem (*)(const StagePlace& place, int i);
std::vector<PassItem> alternating_order(const StagePlace& place, int ahead, ItemAt forward, ItemAt backward);

// `microbatches` must be a multiple of `stages` for interleaved 1F1B.
std::vector<PassItem> pipeline_order(PipelineSchedule schedule, int stages, int stage, int microbatches,
                                     int chunks = 1, bool pairs = false);

// The part of the model that is chunk `chunk` of a stage, and the stage that holds a part.
int part_of(PartPlacement placement, int stages, int stage, int chunk);
int stage_of_part(PartPlacement placement, int stages, int part);

}  // namespace rehearse
