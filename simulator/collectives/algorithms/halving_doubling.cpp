// Recursive halving and doubling: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH" (2005). The nearest members exchange first, half of the buffer. Of n = p + r members,
// p a power of two, the first 2 r form pairs, in which the first member gives its buffer to the second and
// takes the sum back.
#include <bit>
#include <utility>

#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

std::vector<Lane> halving_doubling_lanes(const AlgorithmGroup& group) {
  const int n = static_cast<int>(group.members.size());
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n))), rest = n - power;
  Lane lane;
  Stage give;
  give.kind = Stage::Kind::give;
  std::vector<int> halving;  // members that take part in the halving
  for (int i = 0; i < rest; ++i) {
    give.groups.push_back({2 * i, 2 * i + 1});
    halving.push_back(2 * i + 1);
  }
  for (int i = 2 * rest; i < n; ++i) halving.push_back(i);
  if (rest > 0) lane.stages.push_back(give);
  for (int distance = 1; distance < power; distance *= 2) {
    Stage& stage = lane.stages.emplace_back();
    stage.kind = Stage::Kind::reduce_scatter;
    for (int i = 0; i < power; ++i)
      if ((i & distance) == 0) stage.groups.push_back({halving[i], halving[i + distance]});
  }
  const std::size_t halvings = lane.stages.size() - (rest > 0 ? 1 : 0);
  for (std::size_t i = 0; i < halvings; ++i) {
    Stage stage = lane.stages[lane.stages.size() - 1 - 2 * i];
    stage.kind = Stage::Kind::all_gather;
    lane.stages.push_back(std::move(stage));
  }
  if (rest > 0) {
    give.kind = Stage::Kind::take_back;
    lane.stages.push_back(std::move(give));
  }
  return {lane};
}

}  // namespace

extern const AlgorithmEntry kHalvingDoublingAlgorithm{
    .lanes = halving_doubling_lanes,
    .cost = message_stage_cost,
};

}  // namespace rehearse
