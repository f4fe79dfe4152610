// Double binary trees: one lane for each channel, with two trees over the nodes, of which the inner nodes of
// one are leaves of the other: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan" (2009). Inside a node, the trees continue as a chain, as in NCCL.
#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

// Each channel's ring enters a node at the device of the channel's NIC. That device is the node's head in the
// trees, and the node's other members follow it as a chain.
std::vector<Lane> tree_lanes(const AlgorithmGroup& group) {
  std::vector<Lane> lanes = ring_lanes(group);
  for (Lane& lane : lanes) {
    Stage& stage = lane.stages.front();
    const std::vector<int> order = turn_into(stage, Stage::Kind::trees);
    std::vector<int> heads, before(group.members.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && group.cluster.node_of(group.members[order[i]]) ==
                       group.cluster.node_of(group.members[order[i - 1]]))
        before[order[i]] = order[i - 1];
      else
        heads.push_back(order[i]);
    }
    stage.parents = trees_over(heads, before);
  }
  return lanes;
}

}  // namespace

extern const AlgorithmEntry kTreeAlgorithm{
    .lanes = tree_lanes,
    .cost = tree_stage_cost,
    .in_nccl = always,
};

}  // namespace rehearse
