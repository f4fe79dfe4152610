// Lists the segments of all layers in order, with the placement changes between them. Every micro-batch walks
// through the same segments and changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/segment.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

// A placement change of one tensor, on one rank.
struct ValueChange {
  Change change;
  int layer = 0, value = 0;                // layer of the model, and value of that layer
  double element = 0;                      // bytes of one element
  SegmentKind maker = SegmentKind::block;  // kind of the segment that makes the tensor
  std::string of;                          // "layer 5 projection": the name of that segment
  int route = 0, step = 0;                 // this is change number `step` of this route
};

// The path of a tensor from its producer to those of its readers that read it in the same placement, and its
// gradient's path back. Includes changes that cost nothing. Placements are by factor.
struct ValueRoute {
  int layer = 0, value = 0;
  Placements made, read, gradient_made, gradient_read;  // gradient_made: as the readers make it
  int first = 0, last = 0;                              // segments of the walk between which the readers are
  std::vector<Change> forward, backward;
  // If the placement in which the tensor is passed on is neither the one in which it is made nor the one in
  // which it is read: that placement, and the number of changes that lead to it. Otherwise empty, and 0.
  Placements forward_by_way_of, backward_by_way_of;
  int forward_before = 0, backward_before = 0;
};

// Returns whether the consumer makes the change. If the producer and the consumer of a tensor are on
// different stages, the producer reduces terms before it sends, and the consumer gathers shards.
constexpr bool gathers(Change::Kind kind) {
  return kind == Change::Kind::all_gather || kind == Change::Kind::all_to_all;
}

// The changes in front of a segment.
struct Site {
  std::vector<ValueChange> forward, backward;
  // Forward changes that the backward pass repeats before it comes here: for the gradients of weights, and
  // for the gradients of inputs.
  std::vector<ValueChange> again, again_for_inputs;
  bool repeated = false;  // recomputation repeats the forward changes
  // `ring`: the segment after this site is ring attention to the keys and values of this change.
  // `behind_ring`: the segment before this site is ring attention.
  std::optional<ValueChange> ring;
  bool behind_ring = false;
  bool at_ring() const { return ring || behind_ring; }
};

// A parameter's gradient that is summed over factors other than those that share a batch.
struct PartialGradient {
  int layer = 0;
  std::vector<int> factors;
  double parameters = 0;  // elements on one rank
};

struct Walk {
  std::vector<Factor> factors;
  std::vector<int> first_segment;        // by layer, and one past the last
  std::vector<const Segment*> segments;  // of all layers
  std::vector<int> layer_of;             // by segment
  std::vector<Site> sites;               // by segment, and one after the last
  std::vector<PartialGradient> partial_gradients;
  std::vector<ValueRoute> routes;
  // By layer: the number of shards of its output when it is sent to another stage.
  std::vector<int> output_shards;
};

// Lists the segments and the changes between them. Changes of a tensor between layers are in front of the
// later layer's first segment, others in front of the first segment that needs them. `layers` must outlive
// the walk. `last_of_stage`: the layers whose outputs are sent to another stage.
Walk walk(const std::vector<Layer>& layers, std::vector<Factor> factors,
          const std::vector<int>& last_of_stage = {});

}  // namespace rehearse
