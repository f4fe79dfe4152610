// Recursive doubling: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH" (2005). The nearest members swap first, the entire buffer: the fewest steps, for small buffers.
#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

std::vector<Stage> recursive_doubling_phases(const std::vector<int>& members) {
  return pairs_by_distance(members, Stage::Kind::swap);
}

std::vector<Lane> recursive_doubling_lanes(const AlgorithmGroup& group) {
  return lane_of_power_of_two(static_cast<int>(group.members.size()), recursive_doubling_phases);
}

}  // namespace

extern const AlgorithmEntry kRecursiveDoublingAlgorithm{
    .lanes = recursive_doubling_lanes,
    .cost = message_stage_cost,
};

}  // namespace rehearse
