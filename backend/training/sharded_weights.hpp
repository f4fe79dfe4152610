// Weights that ranks share out: each updates its shard of a bucket from its shard of the summed gradients.
#pragma once

#include <map>

#include "backend/training/perceptron.hpp"
#include "backend/training/shard_optimizer.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

class ShardedWeights {
public:
  // Shares out every bucket whose gradients `program` scatters. `rank` belongs to the role `workers`. Shards
  // start from the perceptron's weights, which must be in fp32.
  ShardedWeights(const Role& workers, int rank, const Program& program, const Perceptron& perceptron,
                 const OptimizerSettings& optimizer, Arithmetic& arithmetic);

  // The buffer of a scatter or gather, filled with what this rank brings; end() takes out what has come.
  Array begin(int stream, const Op& op);
  void end(int stream, const Op& op);
  // This rank's shard of the summed gradients of the bucket that `op` names by its layers.
  Array gradients(const Op& op) const;
  // A step of the optimizer on all shards. The gradients of the next step begin anew.
  void update(int stream);

private:
  struct Bucket {
    LayerRange layers;
    Part part;                       // this rank's; parts are equal, and the last one may be padded
    OwnedArray scattered, gathered;  // of all parts, on their way
    OwnedArray gradients;            // of this part
    ShardOptimizer optimizer;
    bool summed = false;   // `gradients` holds a sum of this step
    bool current = false;  // the perceptron has this step's weights
  };

  static Array own_part(const Bucket& bucket, const Array& all);

  Arithmetic& arithmetic_;
  const Perceptron& perceptron_;
  std::map<int, Bucket> buckets_;  // by first layer
};

}  // namespace rehearse
