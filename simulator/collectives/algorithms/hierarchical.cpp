// Hierarchical: reduce-scatter inside the nodes, all-reduce across the nodes between members at the same
// place, all-gather inside (Horovod's NCCLHierarchicalAllreduce; Cho et al., "BlueConnect", 2019).
#include <algorithm>
#include <utility>

#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

std::vector<Lane> hierarchical_lanes(const AlgorithmGroup& group) {
  const MemberNumbers numbers(group.members);
  std::vector<std::vector<std::vector<int>>> nodes;  // [node][channel inside the node]: its ring
  std::size_t inside = group.members.size();
  for (const std::vector<int>& node : members_by_node(group.cluster, group.members)) {
    std::vector<Endpoint> endpoints;
    for (const int m : node) endpoints.push_back(group.members[m]);
    std::vector<std::vector<int>>& rings = nodes.emplace_back();
    for (const std::vector<Endpoint>& order : ring_orders(group.cluster, endpoints, group.channels).orders)
      rings.push_back(numbers.of(order));
    inside = std::min(inside, rings.size());
  }
  const std::size_t local = nodes.front().front().size();
  std::vector<Lane> lanes;
  for (std::size_t c = 0; c < inside; ++c) {
    Stage in, across;
    for (const std::vector<std::vector<int>>& node : nodes) in.groups.push_back(node[c]);
    for (std::size_t place = 0; place < local; ++place) {
      std::vector<int>& ring = across.groups.emplace_back();
      for (const std::vector<std::vector<int>>& node : nodes) ring.push_back(node[c][place]);
    }
    Lane& lane = lanes.emplace_back();
    lane.share = 1.0 / static_cast<double>(inside);
    in.kind = Stage::Kind::reduce_scatter;
    if (local > 1) lane.stages.push_back(in);
    if (nodes.size() > 1) lane.stages.push_back(std::move(across));
    in.kind = Stage::Kind::all_gather;
    if (local > 1) lane.stages.push_back(std::move(in));
  }
  return lanes;
}

}  // namespace

extern const AlgorithmEntry kHierarchicalAlgorithm{
    .lanes = hierarchical_lanes,
    .same_on_every_node = true,
    .cost = ring_stage_cost,
};

}  // namespace rehearse
