// Weights that ranks share out: each updates its shard of a bucket from its shard of the summed gradients.
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
  // Shares out every part of a bucket whose gradients `program` scatters; experts of such a bucket that no
  // other rank holds are updated whole. `rank` belongs to the role `workers`. Shards
  // start from the network's weights, which must be in fp32.
  ShardedWeights(const Role& workers, int rank, const Program& program, const TrainedNetwork& network,
                 const OptimizerSettings& optimizer, Arithmetic& arithmetic);

  // The buffer of a scatter or gather, filled with what this rank brings; end() takes out what has come.
  Array begin(int stream, const Op& op);
  void end(int stream, const Op& op);
  // This rank's shard of the gradient of the table that the first and the last layer have in common, where
  // they are on different ranks. RunError if there is none.
  Array tied_gradient(int layer) const;
  // This rank's shard of the summed gradients of the part of a bucket that `op` names.
  Array gradients(const Op& op) const;
  // A step of the optimizer on all shards. The gradients of the next step begin anew.
  void update(int stream);

private:
  // Elements [first, first + elements) of a bucket, shared out evenly: `each` a rank, the last part may be
  // padded, `at` where a rank's part of them stands in all that it has of the bucket.
  struct Run {
    std::size_t first = 0, elements = 0, at = 0, each = 0;
    bool tied = false;
  };
  struct Bucket {
    LayerRange layers;
    std::vector<WeightRun> contents;  // of the layers' weights
    Part part;                        // this rank's
    bool alone = false;               // nobody has a share in it
    std::vector<Run> runs;
    OwnedArray scattered, gathered;  // of all parts, on their way
    OwnedArray gradients;            // of this part
    std::unique_ptr<ShardOptimizer> optimizer;
    bool summed = false;   // `gradients` holds a sum of this step
    bool current = false;  // the network has this step's weights
  };

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
