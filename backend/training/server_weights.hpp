// Weights that a rank without layers of its own updates: a parameter server's share of each bucket.
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
  // Of the weights that ops of `program` update; `share`: this rank's, of the tensors that its role shares.
  ServerWeights(const Scenario& scenario, const Mesh& workers, const Program& program, Part share,
                Arithmetic& arithmetic);

  bool has(int tensor) const { return weights_.count(tensor) > 0; }
  // A step of the optimizer with the sum of all slots of `pushed`, slots of equal size, which it adds up in
  // the first one. `update`: an op of the program.
  void update(int stream, const Op& update, const Array& pushed);
  // What is sent to rank `to`: where others may change the weights meanwhile, a copy of this moment's.
  Array sent(int stream, int tensor, int to);
  // Of each push to the last bucket of weights that are shared in no order, how many others were applied
  // since its sender was sent weights.
  std::vector<int> take_staleness() { return std::move(staleness_); }

private:
  struct Weights {
    ShardOptimizer optimizer;
    bool in_no_order = false;
    int applied = 0;              // pushes
    std::map<int, int> answered;  // by rank: how many had been applied when it was sent weights last
  };
  Weights& updated_by(const Op& update);

  Arithmetic& arithmetic_;
  const Program& program_;
  std::mutex mutex_;                                   // streams of a server go on beside each other
  std::map<int, Weights> weights_;                     // by tensor
  std::map<std::pair<int, int>, OwnedArray> answers_;  // by tensor and rank
  int last_ = -1;                                      // tensor
  std::vector<int> staleness_;
};

}  // namespace rehearse
