#include "simulator/engine/limiting_links.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

namespace rehearse {
namespace {

struct LinkUser {
  int edge = 0;  // of a flow
  double times = 0;
};

// Returns whether each flow that crosses one link asks for at least as much of another link. Loads are sorted
// by edge.
bool asks_for_more(const std::vector<LinkUser>& loads, double bandwidth,
                   const std::vector<LinkUser>& of_other, double of_other_bandwidth) {
  if (of_other.size() < loads.size()) return false;
  auto other = of_other.begin();
  for (const LinkUser& load : loads) {
    while (other != of_other.end() && other->edge < load.edge) ++other;
    if (other == of_other.end() || other->edge != load.edge ||
        load.times * of_other_bandwidth > other->times * bandwidth)
      return false;
  }
  return true;
}

class Links {
public:
  Links(const FlowGraph& graph, const Cluster& cluster)
      : graph_(graph.graph), first_(graph.first_link_node), loads_(graph.links.size()) {
    for (const LinkId link : graph.links) {
      bandwidth_.push_back(cluster.bandwidth(link));
      place_.push_back(cluster.link_place(link).kind);
    }
    for (std::size_t edge = 0; edge < graph_.edge_colour.size(); ++edge)
      each_link(edge, [&](std::size_t link, std::uint32_t label) {
        loads_[link].push_back({static_cast<int>(edge), static_cast<double>(label - kLinkLabel)});
      });
  }

  // Of links that imply one another, those nearer to the devices limit: a choice that is the same in all
  // equal parts of a cluster. Every link that implies another one is on the route of each of its flows, so
  // the shortest route is searched.
  bool is_implied(std::size_t link) const {
    constexpr std::int64_t kMostLinks = 64;  // of collectives over many nodes, only the first ones
    std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
    for (const LinkUser& load : loads_[link]) {
      const std::int64_t first = graph_.first_touch[load.edge], last = graph_.first_touch[load.edge + 1];
      if (last - first < end - begin) std::tie(begin, end) = std::pair(first, last);
    }
    if (loads_[link].empty()) return false;
    std::int64_t tried = 0;
    for (std::int64_t t = begin; t < end && tried < kMostLinks; ++t) {
      const int node = graph_.touches[t].node;
      if (node < first_) continue;
      ++tried;
      const auto by = static_cast<std::size_t>(node - first_);
      if (by != link && implies(by, link) && (place_[by] < place_[link] || !implies(link, by))) return true;
    }
    return false;
  }

private:
  bool implies(std::size_t by, std::size_t link) const {
    return asks_for_more(loads_[link], bandwidth_[link], loads_[by], bandwidth_[by]);
  }
  template <class Visit>
  void each_link(std::size_t edge, Visit visit) const {
    for (std::int64_t t = graph_.first_touch[edge]; t < graph_.first_touch[edge + 1]; ++t)
      if (graph_.touches[t].node >= first_)
        visit(static_cast<std::size_t>(graph_.touches[t].node - first_), graph_.touches[t].label);
  }

  const Hypergraph& graph_;
  int first_;  // node of the first link
  std::vector<double> bandwidth_;
  std::vector<LinkPlace::Kind> place_;
  std::vector<std::vector<LinkUser>> loads_;
};

// Returns a hash of what links otherwise tell of a flow and its transfer.
std::uint64_t hash_of(const FlowGraph::Flow& flow, const TransferShape& shape) {
  std::uint64_t hash =
      mix_hash(static_cast<std::uint64_t>(flow.hops), static_cast<std::uint64_t>(shape.ranks));
  for (const int count : {shape.nodes, shape.channels, shape.compute_capability, shape.nvlink_only ? 1 : 0,
                          shape.relayed ? 1 : 0})
    hash = mix_hash(hash, static_cast<std::uint64_t>(count));
  for (const double number :
       {flow.latency_s, flow.slowest_bandwidth, shape.hop_latency_s, shape.tree_latency_s,
        shape.ring_bandwidth, shape.nvlink_bandwidth, shape.pcie_bandwidth, shape.pcie_share})
    hash = mix_hash(hash, std::bit_cast<std::uint64_t>(number));
  return hash;
}

// Returns the graph without the touches of links that are left out.
Hypergraph without(const std::vector<bool>& left_out, const FlowGraph& graph) {
  Hypergraph rest;
  rest.node_colour = graph.graph.node_colour;
  std::vector<int> flow_of(graph.graph.edge_colour.size(), -1);
  for (std::size_t f = 0; f < graph.flows.size(); ++f) flow_of[graph.flows[f].edge] = static_cast<int>(f);
  for (std::size_t edge = 0; edge < graph.graph.edge_colour.size(); ++edge) {
    rest.add_edge(graph.graph.edge_colour[edge]);
    bool lacks = false;
    for (std::int64_t t = graph.graph.first_touch[edge]; t < graph.graph.first_touch[edge + 1]; ++t) {
      const Hypergraph::Touch& touch = graph.graph.touches[t];
      if (touch.node >= graph.first_link_node && left_out[touch.node - graph.first_link_node])
        lacks = true;
      else
        rest.touch(touch.node, touch.label, touch.times);
    }
    if (!lacks || flow_of[edge] < 0) continue;
    const FlowGraph::Flow& flow = graph.flows[flow_of[edge]];
    rest.edge_colour.back() =
        mix_hash(rest.edge_colour.back(), hash_of(flow, graph.transfers[flow.transfer].shape));
  }
  return rest;
}

}  // namespace

Partition partition_by_limiting_links(const FlowGraph& graph, const Cluster& cluster,
                                      const std::set<LinkId>& kept) {
  const Links links(graph, cluster);
  std::vector<bool> left_out(graph.links.size(), false);
  for (std::size_t l = 0; l < left_out.size(); ++l)
    left_out[l] = kept.count(graph.links[l]) == 0 && links.is_implied(l);
  if (std::find(left_out.begin(), left_out.end(), true) == left_out.end())
    return coarsest_equitable_partition(graph.graph);
  Partition p = coarsest_equitable_partition(without(left_out, graph));
  // Links that were left out: by their own class and what crosses them.
  std::vector<std::map<std::pair<int, std::uint32_t>, int>> crossed_by(left_out.size());
  for (std::size_t edge = 0; edge < graph.graph.edge_colour.size(); ++edge)
    for (std::int64_t t = graph.graph.first_touch[edge]; t < graph.graph.first_touch[edge + 1]; ++t) {
      const Hypergraph::Touch& touch = graph.graph.touches[t];
      if (const int link = touch.node - graph.first_link_node; link >= 0 && left_out[link])
        ++crossed_by[link][{p.edge_class[edge], touch.label}];
    }
  std::map<std::pair<int, std::map<std::pair<int, std::uint32_t>, int>>, int> numbers;
  const int first = p.node_classes;
  for (std::size_t l = 0; l < left_out.size(); ++l) {
    if (!left_out[l]) continue;
    int& own = p.node_class[static_cast<std::size_t>(graph.first_link_node) + l];
    own = numbers.try_emplace({own, std::move(crossed_by[l])}, first + static_cast<int>(numbers.size()))
              .first->second;
  }
  p.node_classes += static_cast<int>(numbers.size());
  return p;
}

}  // namespace rehearse
