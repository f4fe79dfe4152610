// NVLS: the NVSwitch of one node adds. NVLSTree: the NVSwitches of several nodes add, and two trees connect
// them. A member's NVLink carries the buffer once each way; the traffic between nodes is that of trees.
#include <fmt/format.h>

#include "simulator/collectives/algorithms/algorithm.hpp"
#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

std::vector<Lane> switched_lanes(const AlgorithmGroup& group) {
  std::vector<Lane> lanes = ring_lanes(group);
  for (Lane& lane : lanes) {
    Stage& stage = lane.stages.front();
    const std::vector<int> order = turn_into(stage, Stage::Kind::switched);
    stage.groups = split_by_node(group, order);
    if (stage.groups.size() < 2) continue;
    std::vector<int> heads;
    for (const std::vector<int>& node : stage.groups) heads.push_back(node.front());
    stage.parents = trees_over(heads, std::vector<int>(group.members.size(), -1));
  }
  return lanes;
}

// NVLS needs NVSwitches that add.
std::string switch_misfit(const AlgorithmGroup& group) {
  const Node& node = group.cluster.node();
  bool processors = false;
  for (const Endpoint e : group.members) processors = processors || e >= group.cluster.devices();
  if (node.interconnect != Node::Interconnect::nvswitch || processors || node.device.compute_capability < 90)
    return "members without an NVSwitch that reduces; allowed: GPUs from compute capability 9.0 on (H100) "
           "with interconnect = \"nvswitch\"";
  return {};
}

std::string lone_misfit(const std::vector<std::vector<int>>& nodes) {
  return nodes.front().size() < 2 ? "one member on each node; allowed: at least 2" : "";
}

std::string nvls_misfit(const AlgorithmGroup& group, const std::vector<std::vector<int>>& nodes) {
  if (const std::string why = switch_misfit(group); !why.empty()) return why;
  if (nodes.size() > 1)
    return fmt::format("members on {} nodes; allowed: one node (several: nvls-tree)", nodes.size());
  return lone_misfit(nodes);
}

std::string nvls_tree_misfit(const AlgorithmGroup& group, const std::vector<std::vector<int>>& nodes) {
  if (const std::string why = switch_misfit(group); !why.empty()) return why;
  if (nodes.size() < 2) return "members on one node; allowed: several nodes (one: nvls)";
  return lone_misfit(nodes);
}

// On one node, NCCL prefers NVLS to rings from a certain number of GPUs on.
bool preferred_by_nccl(const AlgorithmGroup& group) {
  const int newer = group.cluster.node().device.compute_capability >= 100 ? 3 : 2;
  return static_cast<int>(group.members.size()) >= nccl::kLeastRanksNvls[newer];
}

TransferCost nvls_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol, double) {
  return nvls_cost(bytes, stage.shape, protocol);
}

// Replaces the sums in the switches by rings or, if there are trees, by these trees, in which the other
// members of a node follow its head as a chain.
void into_rings_or_trees(Stage& stage, int) {
  stage.kind = stage.parents.empty() ? Stage::Kind::all_reduce : Stage::Kind::trees;
  if (stage.parents.empty()) return;
  for (std::vector<int>& parents : stage.parents)
    for (const std::vector<int>& group : stage.groups)
      for (std::size_t i = 1; i < group.size(); ++i) parents[group[i]] = group[i - 1];
  stage.groups.clear();
}

}  // namespace

extern const AlgorithmEntry kNvlsAlgorithm{
    .lanes = switched_lanes,
    .misfit = nvls_misfit,
    .same_on_every_node = true,
    .cost = nvls_stage_cost,
    .in_nccl = preferred_by_nccl,
    .into_messages = into_rings_or_trees,
};

extern const AlgorithmEntry kNvlsTreeAlgorithm{
    .lanes = switched_lanes,
    .misfit = nvls_tree_misfit,
    .same_on_every_node = true,
    .cost = nvls_stage_cost,
    .in_nccl = always,
    .into_messages = into_rings_or_trees,
};

}  // namespace rehearse
