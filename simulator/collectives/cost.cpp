#include "simulator/collectives/cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "simulator/collectives/algorithms/algorithm.hpp"
#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

int nodes_of(const Cluster& cluster, const std::vector<Endpoint>& members, const std::vector<int>& group) {
  std::set<int> nodes;
  for (const int m : group) nodes.insert(cluster.node_of(members[m]));
  return static_cast<int>(nodes.size());
}

struct Way {
  double sum = 0;
  int edges = 0;  // number of edges of the path with the most edges
};

// Returns the length of the longest path up to a root plus that of the longest path down; `length` has an
// entry for each edge.
Way longest_way(const Stage& stage, const std::vector<PlanEdge>& edges, const std::vector<double>& length) {
  Way longest;
  const std::size_t members = stage.parents.front().size();
  for (std::size_t t = 0; t < stage.parents.size(); ++t) {
    std::vector<double> up(members, 0), down(members, 0);  // by edge between member and parent
    for (std::size_t e = 0; e < edges.size(); ++e) {
      if (edges[e].tree != static_cast<int>(t)) continue;
      if (stage.parents[t][edges[e].from] == edges[e].to)
        up[edges[e].from] = length[e];
      else
        down[edges[e].to] = length[e];
    }
    double most_up = 0, most_down = 0;
    int deepest = 0;
    for (std::size_t m = 0; m < members; ++m) {
      double ups = 0, downs = 0;
      int depth = 0;
      for (int at = static_cast<int>(m); stage.parents[t][at] >= 0; at = stage.parents[t][at]) {
        ups += up[at];
        downs += down[at];
        ++depth;
      }
      most_up = std::max(most_up, ups);
      most_down = std::max(most_down, downs);
      deepest = std::max(deepest, depth);
    }
    longest.sum = std::max(longest.sum, most_up + most_down);
    longest.edges = std::max(longest.edges, 2 * deepest);
  }
  return longest;
}

StageOnNetwork stage_on_network(const Stage& stage, const Cluster& cluster,
                                const std::vector<Endpoint>& members) {
  StageOnNetwork on;
  on.kind = stage.kind;
  on.steps = stage_steps(stage);
  const std::vector<PlanEdge> edges = stage_edges(stage);
  on.edges = static_cast<int>(edges.size());
  std::vector<double> latency_s(edges.size(), 0), s_per_byte(edges.size(), 0);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const std::size_t first = on.links.size();
    route_edge(cluster, members, edges[e], stage.rail, on.links);
    for (std::size_t l = first; l < on.links.size(); ++l) {
      latency_s[e] += cluster.latency_s(on.links[l]);
      s_per_byte[e] = std::max(s_per_byte[e], 1 / cluster.bandwidth(on.links[l]));
    }
    on.shape.hop_latency_s = std::max(on.shape.hop_latency_s, latency_s[e]);
  }
  std::sort(on.links.begin(), on.links.end());
  bool processors = false;
  for (const Endpoint e : members) processors = processors || e >= cluster.devices();
  on.shape.compute_capability = processors ? 0 : cluster.node().device.compute_capability;
  const bool switched = stage.kind == Stage::Kind::switched;
  if (switched && !stage.parents.empty()) {
    std::vector<PlanEdge> of_trees;
    std::vector<double> of_trees_s;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::vector<int>& parents = stage.parents[static_cast<std::size_t>(edges[e].tree)];
      if (parents[edges[e].from] != edges[e].to && parents[edges[e].to] != edges[e].from) continue;
      of_trees.push_back(edges[e]);
      of_trees_s.push_back(latency_s[e]);
    }
    on.shape.tree_latency_s = longest_way(stage, of_trees, of_trees_s).sum;
  }
  if (!stage.exchanges.empty())
    for (std::size_t e = 0; e < edges.size(); ++e)
      if (cluster.node_of(members[edges[e].from]) == cluster.node_of(members[edges[e].to]))
        on.shape.tree_latency_s = std::max(on.shape.tree_latency_s, 2 * latency_s[e]);  // round trip
  if (stage.kind == Stage::Kind::trees) {
    const Way way = longest_way(stage, edges, latency_s);
    on.shape.tree_latency_s = way.sum;
    on.steps = on.shape.tree_edges = way.edges;
    on.shape.tree_s_per_byte = longest_way(stage, edges, s_per_byte).sum;
    for (const double edge : s_per_byte)
      on.shape.tree_edge_s_per_byte = std::max(on.shape.tree_edge_s_per_byte, edge);
  }
  if (stage.kind == Stage::Kind::trees || switched) {
    on.shape.ranks = static_cast<int>(members.size());
    std::set<int> nodes;
    for (const Endpoint e : members) nodes.insert(cluster.node_of(e));
    on.shape.nodes = static_cast<int>(nodes.size());
  } else {
    on.shape.ranks = static_cast<int>(stage.groups.front().size());
    on.shape.nodes = 1;
    for (const std::vector<int>& group : stage.groups)
      on.shape.nodes = std::max(on.shape.nodes, nodes_of(cluster, members, group));
  }
  take_interconnect(on.shape, cluster, members, edges);
  return on;
}

// Calls visit(link, times) for each distinct link of a sorted multiset.
template <class Visit>
void each_link(const std::vector<LinkId>& links, Visit visit) {
  for (std::size_t i = 0; i < links.size();) {
    std::size_t k = i;
    while (k < links.size() && links[k] == links[i]) ++k;
    visit(links[i], static_cast<int>(k - i));
    i = k;
  }
}

bool joined_by_nvlink(const Cluster& cluster, Endpoint a, Endpoint b) {
  const Node& node = cluster.node();
  if (a >= cluster.devices() || b >= cluster.devices() || cluster.node_of(a) != cluster.node_of(b))
    return false;
  if (node.interconnect == Node::Interconnect::nvswitch) return true;
  if (node.interconnect != Node::Interconnect::nvlink_mesh) return false;
  const int x = cluster.local_of(a), y = cluster.local_of(b);
  return std::any_of(node.mesh.begin(), node.mesh.end(), [&](const Node::MeshLink& m) {
    return (m.a == x && m.b == y) || (m.a == y && m.b == x);
  });
}

// Returns the bandwidth, in bytes/s, of each of `hops` concurrent copies between devices of a node that pass
// through host memory.
double through_host_memory(const Node& node, double hops) {
  if (node.cpu_memory_bandwidth <= 0 || hops <= 0) return nccl::kHostCopyBandwidth;
  return std::min(nccl::kHostCopyBandwidth, nccl::kHostMemoryShare * node.cpu_memory_bandwidth / (2 * hops));
}

}  // namespace

void take_interconnect(TransferShape& shape, const Cluster& cluster, const std::vector<Endpoint>& members,
                       const std::vector<PlanEdge>& edges) {
  const Node& node = cluster.node();
  bool all = shape.nodes == 1 && !edges.empty(), any = false;
  double pcie = std::numeric_limits<double>::infinity();  // of the slowest hop over PCIe
  double hops = 0;                                        // over PCIe, in one node
  for (const PlanEdge& edge : edges) {
    const Endpoint from = members[edge.from], to = members[edge.to];
    const bool nvlink = edge.through >= 0 || joined_by_nvlink(cluster, from, to);
    any = any || nvlink;
    if (!nvlink && from < cluster.devices() && to < cluster.devices() &&
        cluster.node_of(from) == cluster.node_of(to)) {
      const bool between_sockets =
          node.socket_of_device(cluster.local_of(from)) != node.socket_of_device(cluster.local_of(to));
      hops += 1.0 / std::max(1, shape.nodes);
      pcie = std::min(pcie, between_sockets ? std::min(node.pcie_bandwidth, node.inter_socket_bandwidth)
                                            : node.pcie_bandwidth);
    }
    all = all && nvlink;
    shape.relayed = shape.relayed || edge.through >= 0;
  }
  shape.nvlink_only = all;
  shape.rack = node.interconnect == Node::Interconnect::nvswitch &&
               std::max(node.devices, node.whole_devices) > nccl::kMostDevicesOfBoard &&
               node.device.compute_capability >= nccl::kFirstCapabilityRack;
  if (std::isfinite(pcie)) {
    shape.pcie_bandwidth = pcie;
    shape.pcie_share = node.pcie_efficiency;
    if (!node.device.peer_to_peer)
      shape.pcie_share = std::min(shape.pcie_share, through_host_memory(node, hops) / pcie);
  }
  shape.nic_share = node.nic_efficiency;
  shape.nic_ordered = node.nic_ordered;
  if (!any) return;
  const bool mesh = node.interconnect == Node::Interconnect::nvlink_mesh;
  shape.nvlink_bandwidth = node.device_bandwidth * (mesh ? shape.channels : 1);
}

PlanOnNetwork on_network(const CollectivePlan& plan, const Cluster& cluster,
                         const std::vector<Endpoint>& members) {
  PlanOnNetwork on;
  on.algorithm = plan.algorithm;
  std::size_t stages = 0;
  for (const Lane& lane : plan.lanes) {
    std::vector<StageOnNetwork>& own = on.lanes.emplace_back();
    const std::vector<StageShare> shares = stage_shares(lane);
    for (std::size_t s = 0; s < lane.stages.size(); ++s) {
      own.push_back(stage_on_network(lane.stages[s], cluster, members));
      own.back().share = shares[s];
      own.back().shape.channels = static_cast<int>(plan.lanes.size());
    }
    stages = std::max(stages, own.size());
  }
  for (std::size_t s = 0; s < stages; ++s) {
    std::map<LinkId, int> crossed;  // number of crossings, over all lanes
    for (const auto& lane : on.lanes)
      if (s < lane.size()) each_link(lane[s].links, [&](LinkId link, int times) { crossed[link] += times; });
    for (auto& lane : on.lanes) {
      if (s >= lane.size()) continue;
      StageOnNetwork& stage = lane[s];
      each_link(stage.links, [&](LinkId link, int) {
        stage.inverse_bandwidth = std::max(stage.inverse_bandwidth, crossed[link] / cluster.bandwidth(link));
      });
      // Trees define ring_bandwidth as 2 S over their time on the links, and each edge carries half of the
      // lane's share. Switched phases define it as S over their time.
      const double edges = stage.kind == Stage::Kind::trees      ? 4
                           : stage.kind == Stage::Kind::switched ? stage.share.block / stage.share.edge
                                                                 : 1;
      if (stage.inverse_bandwidth > 0)
        stage.shape.ring_bandwidth = edges * stage.shape.channels / stage.inverse_bandwidth;
    }
  }
  return on;
}

TransferCost stage_cost(Algorithm algorithm, const StageOnNetwork& stage, double bytes,
                        const Protocol& protocol, double chunk_bytes) {
  TransferCost cost = entry_of(algorithm).cost(stage, bytes, protocol, chunk_bytes);
  cost.bytes_per_edge = bytes * stage.share.edge;
  return cost;
}

namespace {

double plan_time_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol, double chunk_bytes,
                   bool ramps) {
  double longest = 0;
  for (const std::vector<StageOnNetwork>& lane : plan.lanes) {
    double seconds = 0;
    for (const StageOnNetwork& stage : lane) {
      const TransferCost cost = stage_cost(plan.algorithm, stage, bytes, protocol, chunk_bytes);
      const double latency_s =
          stage.kind == Stage::Kind::trees
              ? cost.step_latency_s
              : exposed_latency_s(cost, cost.bytes_per_edge, stage.inverse_bandwidth, chunk_bytes);
      seconds += cost.startup_s + cost.filling_s + (ramps ? cost.ramp_s : 0) + cost.steps * latency_s +
                 cost.bytes_per_edge / cost.efficiency * stage.inverse_bandwidth;
    }
    longest = std::max(longest, seconds);
  }
  return longest;
}

}  // namespace

double time_alone_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol, double chunk_bytes) {
  return plan_time_s(plan, bytes, protocol, chunk_bytes, true);
}

double time_as_chosen_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol,
                        double chunk_bytes) {
  return plan_time_s(plan, bytes, protocol, chunk_bytes, false);
}

std::vector<Algorithm> candidates(const Cluster& cluster, const std::vector<Endpoint>& members,
                                  const Protocol& protocol) {
  const bool nccl = protocol.kind == Protocol::nccl && cluster.node().device.compute_capability > 0;
  const AlgorithmGroup group{cluster, members};
  std::vector<Algorithm> fitting;
  for (int i = 0; i < static_cast<int>(Algorithm::automatic); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const auto in_nccl = entry_of(algorithm).in_nccl;
    if (nccl ? !in_nccl || !in_nccl(group) : is_switched(algorithm)) continue;
    if (misfit(algorithm, cluster, members).empty()) fitting.push_back(algorithm);
  }
  return fitting;
}

}  // namespace rehearse
