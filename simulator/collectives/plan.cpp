#include "simulator/collectives/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "models/text/error.hpp"
#include "simulator/collectives/torus.hpp"

namespace rehearse {
namespace {

using Members = std::vector<int>;

// Converts endpoints, in the orders that the topology returns, into member numbers. Members that share an
// endpoint are used in turn.
class Numbers {
public:
  explicit Numbers(const std::vector<Endpoint>& members) {
    for (std::size_t i = members.size(); i-- > 0;) at_[members[i]].push_back(static_cast<int>(i));
  }
  Members of(const std::vector<Endpoint>& order) const {
    Members numbers;
    numbers.reserve(order.size());
    std::map<Endpoint, std::size_t> taken;
    for (const Endpoint e : order) {
      const Members& here = at_.at(e);
      std::size_t turn = here.size() > 1 ? taken[e]++ : 0;
      numbers.push_back(here[here.size() - 1 - turn]);
    }
    return numbers;
  }

private:
  std::map<Endpoint, Members> at_;
};

std::vector<Lane> ring_lanes(const Cluster& cluster, const std::vector<Endpoint>& members, int channels) {
  const Rings rings = ring_orders(cluster, members, channels);
  const Numbers numbers(members);
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

// Changes the kind of a ring's phase and removes its groups; returns the order of the ring.
Members turn_into(Stage& stage, Stage::Kind kind) {
  Members order = std::move(stage.groups.front());
  stage.kind = kind;
  stage.groups.clear();
  return order;
}

// Returns the parents in two trees over the nodes' heads; `before` has the parents of all other members.
std::vector<Members> trees_over(const Members& heads, const Members& before) {
  std::vector<Members> trees;
  for (const Members& tree : double_tree(static_cast<int>(heads.size()))) {
    Members& parents = trees.emplace_back(before);
    for (std::size_t h = 0; h < heads.size(); ++h) parents[heads[h]] = tree[h] < 0 ? -1 : heads[tree[h]];
  }
  return trees;
}

// Each channel's ring enters a node at the device of the channel's NIC. That device is the node's head in the
// trees, and the node's other members follow it as a chain.
std::vector<Lane> tree_lanes(const Cluster& cluster, const std::vector<Endpoint>& members, int channels) {
  std::vector<Lane> lanes = ring_lanes(cluster, members, channels);
  for (Lane& lane : lanes) {
    Stage& stage = lane.stages.front();
    const Members order = turn_into(stage, Stage::Kind::trees);
    Members heads, before(members.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && cluster.node_of(members[order[i]]) == cluster.node_of(members[order[i - 1]]))
        before[order[i]] = order[i - 1];
      else
        heads.push_back(order[i]);
    }
    stage.parents = trees_over(heads, before);
  }
  return lanes;
}

// Splits the ring of a channel by node. The ring enters each node at the device of the channel's NIC.
std::vector<Members> split_by_node(const Cluster& cluster, const std::vector<Endpoint>& members,
                                   const Members& order) {
  std::vector<Members> nodes;
  for (const int m : order) {
    if (nodes.empty() || cluster.node_of(members[m]) != cluster.node_of(members[nodes.back().front()]))
      nodes.emplace_back();
    nodes.back().push_back(m);
  }
  return nodes;
}

std::vector<Lane> switched_lanes(const Cluster& cluster, const std::vector<Endpoint>& members, int channels) {
  std::vector<Lane> lanes = ring_lanes(cluster, members, channels);
  for (Lane& lane : lanes) {
    Stage& stage = lane.stages.front();
    const Members order = turn_into(stage, Stage::Kind::switched);
    stage.groups = split_by_node(cluster, members, order);
    if (stage.groups.size() < 2) continue;
    for (const Members& tree : double_tree(static_cast<int>(stage.groups.size()))) {
      Members& parents = stage.parents.emplace_back(members.size(), -1);
      for (std::size_t g = 0; g < tree.size(); ++g)
        if (tree[g] >= 0) parents[stage.groups[g].front()] = stage.groups[tree[g]].front();
    }
  }
  return lanes;
}

// Replaces the sums in the network by trees over the nodes' heads; the other members follow their head as a
// chain.
void turn_collnet_into_trees(Stage& stage, int members) {
  Members before(static_cast<std::size_t>(members), -1);
  if (!stage.parents.empty()) before = stage.parents.front();
  for (const Members& node : stage.exchanges)
    for (std::size_t i = 1; i < node.size(); ++i) before[node[i]] = node[i - 1];
  stage.kind = Stage::Kind::trees;
  stage.parents = trees_over(stage.groups.front(), before);
  stage.groups.clear();
  stage.exchanges.clear();
}

// Each node has a chain to its head and back; the network sums over the heads.
std::vector<Lane> collnet_chain_lanes(const Cluster& cluster, const std::vector<Endpoint>& members,
                                      int channels) {
  std::vector<Lane> lanes = ring_lanes(cluster, members, channels);
  for (Lane& lane : lanes) {
    Stage& stage = lane.stages.front();
    const Members order = turn_into(stage, Stage::Kind::switched);
    Members heads, before(members.size(), -1);
    for (const Members& node : split_by_node(cluster, members, order)) {
      heads.push_back(node.front());
      for (std::size_t i = 1; i < node.size(); ++i) before[node[i]] = node[i - 1];
    }
    stage.groups = {heads};
    if (heads.size() < members.size()) stage.parents = {before, before};  // each for half of the block
  }
  return lanes;
}

std::vector<Lane> collnet_direct_lanes(const Cluster& cluster, const std::vector<Endpoint>& members) {
  Stage stage;
  stage.kind = Stage::Kind::switched;
  stage.exchanges = members_by_node(cluster, members);
  for (std::size_t place = 0; place < stage.exchanges.front().size(); ++place) {
    Members& group = stage.groups.emplace_back();
    for (const Members& node : stage.exchanges) group.push_back(node[place]);
  }
  return {{1, {std::move(stage)}}};
}

// Returns why CollNet does not fit. It needs a network whose switches sum; CollNetDirect also needs
// NVSwitches, as in NCCL.
std::string collnet_misfit(Algorithm algorithm, const Cluster& cluster, const std::vector<Endpoint>& members,
                           const std::vector<Members>& nodes) {
  if (!cluster.fabric().sharp)
    return "a network whose switches do not reduce; allowed: a fabric with sharp = true";
  if (std::any_of(members.begin(), members.end(), [&](Endpoint e) { return e >= cluster.devices(); }))
    return "members that are not devices; allowed: devices";
  if (nodes.size() < 2) return "members on one node; allowed: several nodes";
  if (algorithm == Algorithm::collnet_direct && nodes.front().size() > 1 &&
      cluster.node().interconnect != Node::Interconnect::nvswitch)
    return "several members on nodes without an NVSwitch; allowed: interconnect = \"nvswitch\"";
  return {};
}

// Returns why NVLS does not fit. It needs NVSwitches that can sum.
std::string switch_misfit(Algorithm algorithm, const Cluster& cluster, const std::vector<Endpoint>& members,
                          const std::vector<Members>& nodes) {
  const Node& node = cluster.node();
  bool processors = false;
  for (const Endpoint e : members) processors = processors || e >= cluster.devices();
  if (node.interconnect != Node::Interconnect::nvswitch || processors || node.device.compute_capability < 90)
    return "members without an NVSwitch that reduces; allowed: GPUs from compute capability 9.0 on (H100) "
           "with interconnect = \"nvswitch\"";
  if (algorithm == Algorithm::nvls && nodes.size() > 1)
    return fmt::format("members on {} nodes; allowed: one node (several: nvls-tree)", nodes.size());
  if (algorithm == Algorithm::nvls_tree && nodes.size() < 2)
    return "members on one node; allowed: several nodes (one: nvls)";
  if (nodes.front().size() < 2) return "one member on each node; allowed: at least 2";
  return {};
}

std::vector<Lane> halving_doubling_lanes(int n) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n))), rest = n - power;
  Lane lane;
  Stage give;
  give.kind = Stage::Kind::give;
  Members halving;  // members that take part in the halving
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

std::vector<Lane> hierarchical_lanes(const Cluster& cluster, const std::vector<Endpoint>& members,
                                     int channels) {
  const Numbers numbers(members);
  std::vector<std::vector<Members>> nodes;  // [node][channel inside the node]: its ring
  std::size_t inside = members.size();
  for (const Members& node : members_by_node(cluster, members)) {
    std::vector<Endpoint> endpoints;
    for (const int m : node) endpoints.push_back(members[m]);
    std::vector<Members>& rings = nodes.emplace_back();
    for (const std::vector<Endpoint>& order : ring_orders(cluster, endpoints, channels).orders)
      rings.push_back(numbers.of(order));
    inside = std::min(inside, rings.size());
  }
  const std::size_t local = nodes.front().front().size();
  std::vector<Lane> lanes;
  for (std::size_t c = 0; c < inside; ++c) {
    Stage in, across;
    for (const std::vector<Members>& node : nodes) in.groups.push_back(node[c]);
    for (std::size_t place = 0; place < local; ++place) {
      Members& ring = across.groups.emplace_back();
      for (const std::vector<Members>& node : nodes) ring.push_back(node[c][place]);
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

std::vector<std::vector<int>> members_by_node(const Cluster& cluster, const std::vector<Endpoint>& members) {
  std::map<int, std::size_t> index;
  std::vector<Members> nodes;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [it, added] = index.emplace(cluster.node_of(members[i]), nodes.size());
    if (added) nodes.emplace_back();
    nodes[it->second].push_back(static_cast<int>(i));
  }
  return nodes;
}

std::string misfit(Algorithm algorithm, const Cluster& cluster, const std::vector<Endpoint>& members) {
  if (members.size() < 2) return {};
  if (algorithm == Algorithm::torus) return torus_misfit(cluster, members);
  const bool switched = is_switched(algorithm);
  if (algorithm != Algorithm::hierarchical && !switched) return {};
  const std::vector<Members> nodes = members_by_node(cluster, members);
  for (std::size_t i = 1; i < nodes.size(); ++i)
    if (nodes[i].size() != nodes[0].size())
      return fmt::format("{} members on one node and {} on another; allowed: the same number on every node",
                         nodes[0].size(), nodes[i].size());
  if (is_collnet(algorithm)) return collnet_misfit(algorithm, cluster, members, nodes);
  if (switched) return switch_misfit(algorithm, cluster, members, nodes);
  return {};
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
  switch (algorithm) {
    case Algorithm::ring:
      plan.lanes = ring_lanes(cluster, members, channels);
      break;
    case Algorithm::tree:
      plan.lanes = tree_lanes(cluster, members, channels);
      break;
    case Algorithm::halving_doubling:
      plan.lanes = halving_doubling_lanes(plan.members);
      break;
    case Algorithm::hierarchical:
      plan.lanes = hierarchical_lanes(cluster, members, channels);
      break;
    case Algorithm::torus:
      plan.lanes = torus_lanes(cluster, members);
      break;
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      plan.lanes = switched_lanes(cluster, members, channels);
      break;
    case Algorithm::collnet_chain:
      plan.lanes = collnet_chain_lanes(cluster, members, channels);
      break;
    case Algorithm::collnet_direct:
      plan.lanes = collnet_direct_lanes(cluster, members);
      break;
    case Algorithm::automatic:
      throw RunError("an all-reduce has algorithm \"auto\"; a schedule must name the chosen algorithm");
  }
  return plan;
}

std::vector<PlanEdge> stage_edges(const Stage& stage) {
  std::vector<PlanEdge> edges;
  for (const Members& group : stage.groups) {
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
  for (const Members& node : stage.exchanges)
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
    for (Stage& stage : lane.stages) {
      if (stage.kind != Stage::Kind::switched) continue;
      if (is_collnet(plan.algorithm)) {
        turn_collnet_into_trees(stage, plan.members);
        continue;
      }
      stage.kind = stage.parents.empty() ? Stage::Kind::all_reduce : Stage::Kind::trees;
      if (stage.parents.empty()) continue;
      for (Members& parents : stage.parents)
        for (const Members& group : stage.groups)
          for (std::size_t i = 1; i < group.size(); ++i) parents[group[i]] = group[i - 1];
      stage.groups.clear();
    }
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
    const bool whole = stage.kind == Stage::Kind::give || stage.kind == Stage::Kind::take_back;
    shares.push_back({block, block * (whole ? 1 : stage_steps(stage) / size)});
    if (stage.kind == Stage::Kind::reduce_scatter) block /= size;
  }
  return shares;
}

std::vector<std::vector<int>> double_tree(int n) {
  // In the first tree, a node's lowest set bit gives its height. Its parent has the next higher bit set
  // instead or, if there is no such node, only the remaining higher bits. Odd nodes are leaves.
  Members first(static_cast<std::size_t>(n), -1);
  for (int i = 1; i < n; ++i) {
    const int lowest = i & -i, up = (i ^ lowest) | (lowest << 1);
    first[i] = up < n ? up : i ^ lowest;
  }
  // In the second tree the odd nodes are inner nodes: it is the mirror image or, for odd n, the first tree
  // shifted by one.
  Members second(first.size(), -1);
  const auto moved = [n](int i) { return n % 2 == 0 ? n - 1 - i : (i + 1) % n; };
  for (int i = 0; i < n; ++i) second[moved(i)] = first[i] < 0 ? -1 : moved(first[i]);
  return {first, second};
}

}  // namespace rehearse
