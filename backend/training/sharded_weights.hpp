// Shards weights over ranks: each rank updates its shard of a bucket from its shard of the summed gradients.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/training/layer_shard.hpp"
#include "backend/training/shard_optimizer.hpp"
#include "backend/training/trained_network.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

class ShardedWeights {
public:
  // Shards every part of a bucket whose gradients `program` scatters. Experts of such a bucket that no other
  // rank holds are updated unsharded. `rank` belongs to the role `workers`. Shards start from the network's
  // weights, which must be fp32.
  ShardedWeights(const Role& workers, int rank, const Program& program, const TrainedNetwork& network,
                 const OptimizerSettings& optimizer, Arithmetic& arithmetic);

  // begin() returns the buffer of a scatter or gather, filled with this rank's data; end() takes the result
  // out of it.
  Array begin(int stream, const Op& op);
  void end(int stream, const Op& op);
  // Returns this rank's shard of the gradient of the tied embedding table, if the first and the last layer
  // are on different ranks. Throws RunError if there is none.
  Array tied_gradient(int layer) const;
  // Returns this rank's shard of the summed gradients of the bucket's part that `op` names.
  Array gradients(const Op& op) const;
  // Returns this rank's shards: of the part of all weights but experts that are placed separately, and of
  // these.
  std::vector<HeldState> state(const std::string& place, const std::string& place_of_experts) const;
  void set_steps(long steps);
  // Applies an optimizer step to all shards. The gradients of the next step start from 0.
  void update(int stream);

private:
  // Elements [first, first + elements) of a bucket, divided evenly: each rank has `each` of them (the last
  // one may be padded), at offset `at` in its part of the bucket.
  struct Run {
    std::size_t first = 0, elements = 0, at = 0, each = 0;
    bool tied = false;
  };
  struct Bucket {
    LayerRange layers;
    std::vector<WeightRun> contents;  // the layers' weights that it contains
    Part part;                        // this rank's part
    bool alone = false;               // no other rank has a share of it
    std::vector<Run> runs;
    OwnedArray scattered, gathered;  // of all parts, in transit
    OwnedArray gradients;            // of this part
    std::unique_ptr<ShardOptimizer> optimizer;
    bool summed = false;   // `gradients` holds a sum of this step
    bool current = false;  // the network has this step's weights
  };

  // Elements [first, first + count) of a layer; `at`: their offset in the range that was asked for.
  struct LayerPiece {
    int layer = 0;
    std::size_t first = 0, count = 0, at = 0;
  };
  std::vector<LayerPiece> pieces_of(const Bucket& bucket, std::size_t begin, std::size_t count) const;
  void add(LayerRange layers, int number, const Part& part, const OptimizerSettings& optimizer);
  void add_alone(int stream, Bucket& bucket);
  std::vector<Run> runs_of(LayerRange layers, const std::vector<WeightRun>& contents, int parts) const;
  void copy(int stream, const Bucket& bucket, const Array& layers, const Array& parts, bool to_parts) const;
  static Array own_part(const Bucket& bucket, const Array& all);

  Arithmetic& arithmetic_;
  const TrainedNetwork& network_;
  std::map<std::pair<int, int>, Bucket> buckets_;  // by first layer and Action::part
};

}  // namespace rehearse
