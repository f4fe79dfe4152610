// CollNet: the network's switches sum over the nodes, as in NCCL's CollNetChain and CollNetDirect: a NIC
// carries its share of the buffer once each way. Inside a node, there is a chain to the device of the
// channel's NIC and back, or every member exchanges with every other one.
#include <algorithm>
#include <utility>

#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

// Each node has a chain to its head and back; the network sums over the heads.
std::vector<Lane> collnet_chain_lanes(const AlgorithmGroup& group) {
  std::vector<Lane> lanes = ring_lanes(group);
  for (Lane& lane : lanes) {
    Stage& stage = lane.stages.front();
    const std::vector<int> order = turn_into(stage, Stage::Kind::switched);
    std::vector<int> heads, before(group.members.size(), -1);
    for (const std::vector<int>& node : split_by_node(group, order)) {
      heads.push_back(node.front());
      for (std::size_t i = 1; i < node.size(); ++i) before[node[i]] = node[i - 1];
    }
    stage.groups = {heads};
    if (heads.size() < group.members.size()) stage.parents = {before, before};  // each for half of the block
  }
  return lanes;
}

std::vector<Lane> collnet_direct_lanes(const AlgorithmGroup& group) {
  Stage stage;
  stage.kind = Stage::Kind::switched;
  stage.exchanges = members_by_node(group.cluster, group.members);
  for (std::size_t place = 0; place < stage.exchanges.front().size(); ++place) {
    std::vector<int>& peers = stage.groups.emplace_back();
    for (const std::vector<int>& node : stage.exchanges) peers.push_back(node[place]);
  }
  return {{1, {std::move(stage)}}};
}

// CollNet needs a network whose switches add.
std::string chain_misfit(const AlgorithmGroup& group, const std::vector<std::vector<int>>& nodes) {
  const Cluster& cluster = group.cluster;
  if (!cluster.fabric().sharp)
    return "a network whose switches do not reduce; allowed: a fabric with sharp = true";
  if (std::any_of(group.members.begin(), group.members.end(),
                  [&](Endpoint e) { return e >= cluster.devices(); }))
    return "members that are not devices; allowed: devices";
  if (nodes.size() < 2) return "members on one node; allowed: several nodes";
  return {};
}

// CollNetDirect also needs NVSwitches, as in NCCL.
std::string direct_misfit(const AlgorithmGroup& group, const std::vector<std::vector<int>>& nodes) {
  const std::string why = chain_misfit(group, nodes);
  if (!why.empty() || nodes.front().size() == 1 ||
      group.cluster.node().interconnect == Node::Interconnect::nvswitch)
    return why;
  return "several members on nodes without an NVSwitch; allowed: interconnect = \"nvswitch\"";
}

TransferCost chain_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol, double) {
  return collnet_cost(bytes, stage.shape, protocol, false);
}

TransferCost direct_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol, double) {
  return collnet_cost(bytes, stage.shape, protocol, true);
}

// Replaces the sums in the network by trees over the nodes' heads; the other members follow their head as a
// chain.
void into_trees(Stage& stage, int members) {
  std::vector<int> before(static_cast<std::size_t>(members), -1);
  if (!stage.parents.empty()) before = stage.parents.front();
  for (const std::vector<int>& node : stage.exchanges)
    for (std::size_t i = 1; i < node.size(); ++i) before[node[i]] = node[i - 1];
  stage.kind = Stage::Kind::trees;
  stage.parents = trees_over(stage.groups.front(), before);
  stage.groups.clear();
  stage.exchanges.clear();
}

}  // namespace

extern const AlgorithmEntry kCollnetChainAlgorithm{
    .lanes = collnet_chain_lanes,
    .misfit = chain_misfit,
    .same_on_every_node = true,
    .cost = chain_cost,
    .in_nccl = always,
    .into_messages = into_trees,
};

extern const AlgorithmEntry kCollnetDirectAlgorithm{
    .lanes = collnet_direct_lanes,
    .misfit = direct_misfit,
    .same_on_every_node = true,
    .cost = direct_cost,
    .in_nccl = always,
    .into_messages = into_trees,
};

}  // namespace rehearse
