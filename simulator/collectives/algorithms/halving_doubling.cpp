// Recursive halving and doubling: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH" (2005). The nearest members exchange first, half of the buffer.
#include <utility>

#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

std::vector<Stage> halving_doubling_phases(const std::vector<int>& members) {
  std::vector<Stage> stages = pairs_by_distance(members, Stage::Kind::reduce_scatter);
  for (std::size_t i = stages.size(); i-- > 0;) {
    Stage doubling = stages[i];
    doubling.kind = Stage::Kind::all_gather;
    stages.push_back(std::move(doubling));
  }
  return stages;
}

std::vector<Lane> halving_doubling_lanes(const AlgorithmGroup& group) {
  return lane_of_power_of_two(static_cast<int>(group.members.size()), halving_doubling_phases);
}

}  // namespace

extern const AlgorithmEntry kHalvingDoublingAlgorithm{
    .lanes = halving_doubling_lanes,
    .cost = message_stage_cost,
};

}  // namespace rehearse
