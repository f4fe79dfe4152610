// Manages weights that a rank without layers updates: a parameter server's share of each bucket.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/training/layer_shard.hpp"
#include "backend/training/shard_optimizer.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

class ServerWeights {
public:
  // Creates the weights that ops of `program` update. `share` is this rank's share of the tensors that its
  // role shares.
  ServerWeights(const Scenario& scenario, const Mesh& workers, const Program& program, Part share,
                Arithmetic& arithmetic);

  bool has(int tensor) const { return weights_.count(tensor) > 0; }
  // Applies an optimizer step with the sum of all slots of `pushed`, which have equal sizes; sums them in the
  // first slot. `update` is an op of the program.
  void update(int stream, const Op& update, const Array& pushed);
  // Returns the weights to send to rank `to`: a copy if other ranks may change the weights in the meantime.
  Array sent(int stream, int tensor, int to);
  // For each push to the last bucket of asynchronously shared weights, returns how many other pushes were
  // applied since its sender was last sent weights.
  std::vector<int> take_staleness() { return std::move(staleness_); }

private:
  struct Weights {
    ShardOptimizer optimizer;
    bool in_no_order = false;
    int applied = 0;              // number of pushes applied
    std::map<int, int> answered;  // by rank: the value of `applied` when it was last sent weights
  };
  Weights& updated_by(const Op& update);

  Arithmetic& arithmetic_;
  const Program& program_;
  std::mutex mutex_;                                   // streams of a server run concurrently
  std::map<int, Weights> weights_;                     // by tensor
  std::map<std::pair<int, int>, OwnedArray> answers_;  // by tensor and rank
  int last_ = -1;                                      // the tensor of the last bucket
  std::vector<int> staleness_;
};

}  // namespace rehearse
