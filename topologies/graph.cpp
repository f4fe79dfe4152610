#include "topologies/graph.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace rehearse {
namespace {

// Limit on the entries of cached trees: 64 MiB. Beyond it, trees are computed again.
constexpr std::size_t kRemembered = std::size_t{1} << 24;

bool begins_with_number_after(const std::string& name, std::string_view prefix) {
  return name.size() > prefix.size() && name.compare(0, prefix.size(), prefix) == 0 &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

void check_name(const std::string& name, const Place& place) {
  const bool plain =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
      std::string::npos;
  if (name.empty() || name.size() > 64 || !plain)
    throw InputError(place,
                     fmt::format("a link ends at \"{}\"; allowed: names of 1 to 64 letters, digits and _",
                                 name.substr(0, 64)));
}

}  // namespace

FabricGraph::FabricGraph(const std::vector<std::string>& nodes,
                         const std::vector<ClusterParts::GraphLink>& cables, const Place& place) {
  for (const std::string& name : nodes) vertex(name);
  std::set<std::pair<int, int>> known;
  for (const auto& cable : cables) {
    for (const std::string& end : {cable.a, cable.b}) {
      check_name(end, cable.place);
      const bool node = begins_with_number_after(end, "node") || begins_with_number_after(end, "server");
      if (node && vertices_.count(end) == 0)
        throw InputError(cable.place,
                         fmt::format("a link ends at \"{}\", which the cluster does not have; allowed: {}",
                                     end, nodes.size() == 1 ? nodes[0] : nodes[0] + " to " + nodes.back()));
    }
    if (cable.a == cable.b)
      throw InputError(cable.place,
                       fmt::format("a link joins \"{}\" to itself; allowed: two different ends", cable.a));
    const int a = vertex(cable.a), b = vertex(cable.b);
    if (!known.insert(std::minmax(a, b)).second)
      throw InputError(cable.place,
                       fmt::format("a second link joins \"{}\" and \"{}\"; allowed: one, with the gbps of "
                                   "all cables together",
                                   cable.a, cable.b));
    edges_[a].push_back({b, static_cast<LinkId>(tail_.size())});
    edges_[b].push_back({a, static_cast<LinkId>(tail_.size() + 1)});
    tail_.insert(tail_.end(), {a, b});
    latency_s_.insert(latency_s_.end(), {cable.latency_s, cable.latency_s});
  }
  const std::vector<LinkId> reached = tree(0);
  for (std::size_t node = 1; node < nodes.size(); ++node)
    if (reached[node] < 0)
      throw InputError(
          place, fmt::format("no path leads from {} to {}; allowed: a [[link]] list that connects all nodes",
                             nodes[0], nodes[node]));
}

int FabricGraph::vertex(const std::string& name) {
  const auto [it, added] = vertices_.emplace(name, static_cast<int>(names_.size()));
  if (added) {
    names_.push_back(name);
    edges_.emplace_back();
  }
  return it->second;
}

std::vector<LinkId> FabricGraph::tree(int source) const {
  const std::size_t n = names_.size();
  std::vector<LinkId> enter(n, -1);
  std::vector<int> hops(n, -1);
  std::vector<double> latency(n, 0);
  hops[source] = 0;
  std::vector<int> level = {source}, next;
  while (!level.empty()) {
    next.clear();
    for (const int from : level) {
      for (const Edge& edge : edges_[from]) {
        if (hops[edge.to] >= 0 && hops[edge.to] <= hops[from]) continue;
        const double l = latency[from] + latency_s_[edge.link];
        const bool first = hops[edge.to] < 0;
        if (first || l < latency[edge.to] ||
            (l == latency[edge.to] && names_[from] < names_[tail_[enter[edge.to]]])) {
          enter[edge.to] = edge.link;
          latency[edge.to] = l;
        }
        if (first) {
          hops[edge.to] = hops[from] + 1;
          next.push_back(edge.to);
        }
      }
    }
    level.swap(next);
  }
  return enter;
}

void FabricGraph::path(int from_node, int to_node, LinkId first_link, std::vector<LinkId>& links) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = trees_.find(from_node);
  if (it == trees_.end()) {
    if ((trees_.size() + 1) * names_.size() > kRemembered) trees_.clear();
    it = trees_.emplace(from_node, tree(from_node)).first;
  }
  const auto begin = static_cast<std::ptrdiff_t>(links.size());
  for (int at = to_node; at != from_node; at = tail_[it->second[at]])
    links.push_back(first_link + it->second[at]);
  std::reverse(links.begin() + begin, links.end());
}

}  // namespace rehearse
