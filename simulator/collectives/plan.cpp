#include "simulator/collectives/plan.hpp"

#include <fmt/format.h>

#include <utility>

#include "models/text/error.hpp"
#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {

std::string misfit(Algorithm algorithm, const Cluster& cluster, const std::vector<Endpoint>& members) {
  if (members.size() < 2 || algorithm == Algorithm::automatic) return {};
  const AlgorithmEntry& entry = entry_of(algorithm);
  if (!entry.same_on_every_node && !entry.misfit) return {};
  const std::vector<std::vector<int>> nodes = members_by_node(cluster, members);
  for (std::size_t i = 1; entry.same_on_every_node && i < nodes.size(); ++i)
    if (nodes[i].size() != nodes[0].size())
      return fmt::format("{} members on one node and {} on another; allowed: the same number on every node",
                         nodes[0].size(), nodes[i].size());
  return entry.misfit ? entry.misfit({cluster, members}, nodes) : "";
}

CollectivePlan collective_plan(Algorithm algorithm, const Cluster& cluster,
                               const std::vector<Endpoint>& members, int channels) {
  CollectivePlan plan;
  plan.algorithm = algorithm;
  plan.members = static_cast<int>(members.size());
  if (plan.members < 2) return plan;
  if (const std::string why = misfit(algorithm, cluster, members); !why.empty())
    throw InputError({cluster.name}, fmt::format("{} all-reduce over a group with {}",
                                                 kAlgorithmNames[static_cast<std::size_t>(algorithm)], why));
  plan.lanes = entry_of(algorithm).lanes({cluster, members, channels});
  return plan;
}

std::vector<PlanEdge> stage_edges(const Stage& stage) {
  std::vector<PlanEdge> edges;
  for (const std::vector<int>& group : stage.groups) {
    if (stage.kind == Stage::Kind::give)
      edges.push_back({group[0], group[1]});
    else if (stage.kind == Stage::Kind::take_back)
      edges.push_back({group[1], group[0]});
    else
      for (std::size_t i = 0; i < group.size(); ++i) {
        edges.push_back({group[i], group[(i + 1) % group.size()]});
        for (const std::array<int, 3>& hop : stage.relays)
          if (hop[0] == edges.back().from && hop[2] == edges.back().to) edges.back().through = hop[1];
        // A switched block leaves one member and enters the next one over the switch, in two halves. Between
        // nodes, the members below one leaf are neighbours in the group, so the leaf's uplinks carry only
        // what its switch has summed.
        if (stage.kind == Stage::Kind::switched && stage.exchanges.empty()) edges.push_back(edges.back());
      }
  }
  // For each pair: the receiver's part of the sender's block, and the sender's own part summed over all
  // nodes.
  for (const std::vector<int>& node : stage.exchanges)
    for (const int from : node)
      for (const int to : node)
        if (from != to) edges.insert(edges.end(), 2, {from, to});
  for (std::size_t t = 0; t < stage.parents.size(); ++t)
    for (std::size_t m = 0; m < stage.parents[t].size(); ++m)
      if (const int parent = stage.parents[t][m]; parent >= 0) {
        edges.push_back({static_cast<int>(m), parent, static_cast<int>(t)});
        edges.push_back({parent, static_cast<int>(m), static_cast<int>(t)});
      }
  return edges;
}

void route_edge(const Cluster& cluster, const std::vector<Endpoint>& members, const PlanEdge& edge, int rail,
                std::vector<LinkId>& links) {
  if (edge.through < 0) return cluster.route(members[edge.from], members[edge.to], rail, links);
  cluster.route(members[edge.from], members[edge.through], rail, links);
  cluster.route(members[edge.through], members[edge.to], rail, links);
}

CollectivePlan in_messages(CollectivePlan plan) {
  for (Lane& lane : plan.lanes)
    for (Stage& stage : lane.stages)
      if (stage.kind == Stage::Kind::switched) entry_of(plan.algorithm).into_messages(stage, plan.members);
  return plan;
}

int stage_steps(const Stage& stage) {
  switch (stage.kind) {
    case Stage::Kind::all_reduce:
      return 2 * (static_cast<int>(stage.groups.front().size()) - 1);
    case Stage::Kind::reduce_scatter:
    case Stage::Kind::all_gather:
      return static_cast<int>(stage.groups.front().size()) - 1;
    case Stage::Kind::give:
    case Stage::Kind::take_back:
    case Stage::Kind::swap:
    case Stage::Kind::switched:
      return 1;
    case Stage::Kind::trees:
      break;
  }
  return 0;
}

std::vector<StageShare> stage_shares(const Lane& lane) {
  std::vector<StageShare> shares;
  double block = lane.share;
  for (const Stage& stage : lane.stages) {
    if (stage.kind == Stage::Kind::trees) {
      shares.push_back({block, block / static_cast<double>(stage.parents.size())});
      continue;
    }
    if (stage.kind == Stage::Kind::switched) {
      const double parts = stage.exchanges.empty() ? 2 : static_cast<double>(stage.exchanges.front().size());
      shares.push_back({block, block / parts});
      continue;
    }
    const double size = static_cast<double>(stage.groups.front().size());
    if (stage.kind == Stage::Kind::all_gather) block *= size;
    const bool whole = stage.kind == Stage::Kind::give || stage.kind == Stage::Kind::take_back ||
                       stage.kind == Stage::Kind::swap;
    shares.push_back({block, block * (whole ? 1 : stage_steps(stage) / size)});
    if (stage.kind == Stage::Kind::reduce_scatter) block /= size;
  }
  return shares;
}

std::vector<std::vector<int>> double_tree(int n) {
  // In the first tree, a node's lowest set bit gives its height. Its parent has the next higher bit set
  // instead or, if there is no such node, only the remaining higher bits. Odd nodes are leaves.
  std::vector<int> first(static_cast<std::size_t>(n), -1);
  for (int i = 1; i < n; ++i) {
    const int lowest = i & -i, up = (i ^ lowest) | (lowest << 1);
    first[i] = up < n ? up : i ^ lowest;
  }
  // In the second tree the odd nodes are inner nodes: it is the mirror image or, for odd n, the first tree
  // shifted by one.
  std::vector<int> second(first.size(), -1);
  const auto moved = [n](int i) { return n % 2 == 0 ? n - 1 - i : (i + 1) % n; };
  for (int i = 0; i < n; ++i) second[moved(i)] = first[i] < 0 ? -1 : moved(first[i]);
  return {first, second};
}

}  // namespace rehearse
