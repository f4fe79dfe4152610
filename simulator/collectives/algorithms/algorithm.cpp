#include "simulator/collectives/algorithms/algorithm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "models/text/error.hpp"

namespace rehearse {

#define ALGORITHM(algorithm, name, adder, entry) extern const AlgorithmEntry entry;
#include "simulator/schedule/algorithms.inc"
#undef ALGORITHM

const AlgorithmEntry& entry_of(Algorithm algorithm) {
  static constexpr std::array kEntries = {
#define ALGORITHM(algorithm, name, adder, entry) &(entry),
#include "simulator/schedule/algorithms.inc"
#undef ALGORITHM
  };
  if (algorithm == Algorithm::automatic)
    throw RunError("an all-reduce has algorithm \"auto\"; a schedule must name the chosen algorithm");
  return *kEntries[static_cast<std::size_t>(algorithm)];
}

bool always(const AlgorithmGroup&) {
  return true;
}

MemberNumbers::MemberNumbers(const std::vector<Endpoint>& members) {
  at_.reserve(members.size());
  for (const Endpoint e : members) at_.emplace_back(e, static_cast<int>(at_.size()));
  if (!std::is_sorted(at_.begin(), at_.end())) std::sort(at_.begin(), at_.end());
}

std::vector<int> MemberNumbers::of(const std::vector<Endpoint>& order) const {
  std::vector<int> numbers;
  numbers.reserve(order.size());
  std::map<Endpoint, std::ptrdiff_t> taken;  // of endpoints with several members
  auto guess = at_.begin();                  // rings are often in the order of their members
  for (const Endpoint e : order) {
    if (guess == at_.end() || guess->first != e)
      guess = std::lower_bound(at_.begin(), at_.end(), std::pair(e, 0));
    const auto next = guess + 1;
    const bool several = next != at_.end() && next->first == e;
    numbers.push_back(several ? (guess + taken[e]++)->second : guess->second);
    guess = several ? at_.end() : next;
  }
  return numbers;
}

std::vector<Lane> ring_lanes(const AlgorithmGroup& group) {
  const Rings rings = ring_orders(group.cluster, group.members, group.channels);
  const MemberNumbers numbers(group.members);
  std::vector<Lane> lanes;
  for (std::size_t c = 0; c < rings.orders.size(); ++c) {
    Stage stage;
    stage.groups = {numbers.of(rings.orders[c])};
    stage.rail = rings.rails[c];
    for (const std::array<Endpoint, 3>& hop : rings.relays[c])
      stage.relays.push_back({numbers.of({hop[0]})[0], numbers.of({hop[1]})[0], numbers.of({hop[2]})[0]});
    lanes.push_back({1.0 / static_cast<double>(rings.orders.size()), {std::move(stage)}});
  }
  return lanes;
}

std::vector<int> turn_into(Stage& stage, Stage::Kind kind) {
  std::vector<int> order = std::move(stage.groups.front());
  stage.kind = kind;
  stage.groups.clear();
  return order;
}

std::vector<std::vector<int>> split_by_node(const AlgorithmGroup& group, const std::vector<int>& order) {
  std::vector<std::vector<int>> nodes;
  for (const int m : order) {
    if (nodes.empty() ||
        group.cluster.node_of(group.members[m]) != group.cluster.node_of(group.members[nodes.back().front()]))
      nodes.emplace_back();
    nodes.back().push_back(m);
  }
  return nodes;
}

std::vector<std::vector<int>> members_by_node(const Cluster& cluster, const std::vector<Endpoint>& members) {
  std::map<int, std::size_t> index;
  std::vector<std::vector<int>> nodes;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [it, added] = index.emplace(cluster.node_of(members[i]), nodes.size());
    if (added) nodes.emplace_back();
    nodes[it->second].push_back(static_cast<int>(i));
  }
  return nodes;
}

std::vector<std::vector<int>> trees_over(const std::vector<int>& heads, const std::vector<int>& before) {
  std::vector<std::vector<int>> trees;
  for (const std::vector<int>& tree : double_tree(static_cast<int>(heads.size()))) {
    std::vector<int>& parents = trees.emplace_back(before);
    for (std::size_t h = 0; h < heads.size(); ++h) parents[heads[h]] = tree[h] < 0 ? -1 : heads[tree[h]];
  }
  return trees;
}

std::vector<Stage> pairs_by_distance(const std::vector<int>& members, Stage::Kind kind) {
  std::vector<Stage> stages;
  for (std::size_t distance = 1; distance < members.size(); distance *= 2) {
    Stage& stage = stages.emplace_back();
    stage.kind = kind;
    for (std::size_t i = 0; i < members.size(); ++i)
      if ((i & distance) == 0) stage.groups.push_back({members[i], members[i + distance]});
  }
  return stages;
}

std::vector<Lane> lane_of_power_of_two(int n, std::vector<Stage> (*phases)(const std::vector<int>& members)) {
  const int rest = n - static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  Stage pairs;
  std::vector<int> others;
  for (int i = 0; i < rest; ++i) {
    pairs.groups.push_back({2 * i, 2 * i + 1});
    others.push_back(2 * i + 1);
  }
  for (int i = 2 * rest; i < n; ++i) others.push_back(i);
  Lane lane;
  lane.stages = phases(others);
  if (rest > 0) {
    pairs.kind = Stage::Kind::give;
    lane.stages.insert(lane.stages.begin(), pairs);
    pairs.kind = Stage::Kind::take_back;
    lane.stages.push_back(std::move(pairs));
  }
  return {lane};
}

TransferCost ring_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                             double chunk_bytes) {
  const CollectiveKind kind = stage.kind == Stage::Kind::reduce_scatter ? CollectiveKind::reduce_scatter
                              : stage.kind == Stage::Kind::all_gather   ? CollectiveKind::all_gather
                                                                        : CollectiveKind::all_reduce;
  return ring_cost(kind, bytes * stage.share.block * stage.shape.channels, stage.shape, protocol,
                   chunk_bytes);
}

TransferCost tree_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                             double chunk_bytes) {
  return tree_cost(bytes, stage.shape, protocol, chunk_bytes);
}

TransferCost message_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                                double chunk_bytes) {
  const double edge_bytes = bytes * stage.share.edge;
  TransferCost cost = message_cost(piece_of(edge_bytes / stage.steps, chunk_bytes), stage.shape, protocol);
  cost.steps = stage.steps;
  cost.step_latency_s += cost.startup_s;  // every step is a separate call
  cost.startup_s = 0;
  return cost;
}

}  // namespace rehearse
