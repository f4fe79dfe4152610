// The segments of all layers in order, with the placement changes between them. Every micro-batch walks
// through the same segments and changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/segment.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

// A change of one tensor, on one rank.
struct ValueChange {
  Change change;
  int layer = 0, value = 0;                // of the model, and of that layer
  double element = 0;                      // bytes of one
  SegmentKind maker = SegmentKind::block;  // of the segment that makes the tensor
  std::string of;                          // "layer 5 projection": that segment
  int route = 0, step = 0;                 // number `step` of the changes of this route
};

// From who makes a tensor to those of its readers that read it in one placement, and its gradient's way back.
// Changes that cost nothing count, too. Placements are by factor.
struct ValueRoute {
  int layer = 0, value = 0;
  Placements made, read, gradient_made, gradient_read;  // gradient_made: by its readers
  int first = 0, last = 0;                              // of the readers: segments of the walk
  std::vector<Change> forward, backward;
};

// Where the producer and the consumer of a tensor are on different stages, the producer reduces terms before
// it sends, and the consumer gathers shards.
constexpr bool gathers(Change::Kind kind) {
  return kind == Change::Kind::all_gather || kind == Change::Kind::all_to_all;
}

// In front of a segment.
struct Site {
  std::vector<ValueChange> forward, backward;
  // Forward changes that the backward pass repeats before it comes here: for the gradients of weights, and
  // for those of inputs.
  std::vector<ValueChange> again, again_for_inputs;
  bool repeated = false;  // recomputation repeats the forward changes
  // The segment behind is attention in a ring, to the keys and values of this change; or the one in front.
  std::optional<ValueChange> ring;
  bool behind_ring = false;
  bool at_ring() const { return ring || behind_ring; }
};

// A parameter's gradient that is summed over factors, besides those that share a batch.
struct PartialGradient {
  int layer = 0;
  std::vector<int> factors;
  double parameters = 0;  // elements on one rank
};

struct Walk {
  std::vector<Factor> factors;
  std::vector<int> first_segment;        // by layer, and behind the last one
  std::vector<const Segment*> segments;  // of all layers
  std::vector<int> layer_of;             // by segment
  std::vector<Site> sites;               // by segment, and one behind the last
  std::vector<PartialGradient> partial_gradients;
  std::vector<ValueRoute> routes;
  // By layer: in how many shards its output lies when it goes on to another stage.
  std::vector<int> output_shards;
};

// Changes of a tensor between layers stand in front of the later one's first segment, others in front of the
// first segment that wants them. `layers` must outlive the walk. `last_of_stage`: the layers whose outputs go
// on to another stage.
Walk walk(const std::vector<Layer>& layers, std::vector<Factor> factors,
          const std::vector<int>& last_of_stage = {});

}  // namespace rehearse
