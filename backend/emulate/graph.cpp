#include "backend/emulate/graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

struct Way {
  Conversation ends;
  std::vector<LinkId> links;
};

// Returns the name of the cable to which a direction belongs.
std::string cable_name(const std::string& direction) {
  for (const std::string_view ending : {".out", ".in"})
    if (direction.size() > ending.size() &&
        direction.compare(direction.size() - ending.size(), ending.size(), ending) == 0)
      return direction.substr(0, direction.size() - ending.size());
  return direction;
}

// Returns the switch at an end of "leaf3-spine1"; empty if the link is named after one end alone.
std::string end_name(const std::string& direction, bool head) {
  const std::size_t dash = direction.find('-');
  if (dash == std::string::npos || direction.find('.') != std::string::npos) return {};
  return head ? direction.substr(dash + 1) : direction.substr(0, dash);
}

class Deriver {
public:
  Deriver(const Cluster& cluster, std::vector<Endpoint> endpoints, const std::vector<Conversation>& wanted,
          double most_bandwidth)
      : cluster_(cluster), most_(most_bandwidth) {
    std::sort(endpoints.begin(), endpoints.end());
    endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
    const Endpoint last = cluster.server_processor(cluster.server_nodes()) - 1;
    for (const Endpoint e : endpoints)
      if (e < 0 || e > last)
        throw InputError({}, fmt::format("a rank is on endpoint {}; allowed: 0 to {}", e, last));
    graph_.endpoints = endpoints;
    collect_ways(wanted);
    number_links();
  }

  EmulationGraph derive() {
    join_links();
    attach_endpoints();
    contract_fast_links();
    make_vertices();
    make_cables();
    make_forwards();
    return std::move(graph_);
  }

private:
  struct Port {  // for an endpoint that must not share a vertex with the end of its routes
    int endpoint = 0;
    int end = 0;
  };

  void collect_ways(const std::vector<Conversation>& wanted) {
    std::set<std::tuple<Endpoint, Endpoint, int>> all;
    const auto both = [&](Endpoint a, Endpoint b, int rail) {
      if (a == b) return;
      all.insert({a, b, std::max(rail, -1)});
      all.insert({b, a, std::max(rail, -1)});
    };
    if (wanted.empty()) {
      for (const Endpoint a : graph_.endpoints)
        for (const Endpoint b : graph_.endpoints) both(a, b, -1);
    }
    for (const auto& c : wanted) {
      for (const Endpoint e : {c.from, c.to})
        if (!std::binary_search(graph_.endpoints.begin(), graph_.endpoints.end(), e))
          throw InputError({}, fmt::format("a transfer from endpoint {} to {}; allowed: endpoints of ranks",
                                           c.from, c.to));
      both(c.from, c.to, c.rail);
    }
    std::set<int> rails = {-1};
    for (const auto& [from, to, rail] : all) {
      Way way{{from, to, rail}, {}};
      cluster_.route(from, to, rail, way.links);
      double slow = 0, fast = 0;
      for (const LinkId l : way.links) (built(l) ? slow : fast) += cluster_.latency_s(l);
      graph_.built_latency_s = std::max(graph_.built_latency_s, slow);
      graph_.left_out_latency_s = std::max(graph_.left_out_latency_s, fast);
      rails.insert(rail);
      ways_.push_back(std::move(way));
    }
    graph_.rails.assign(rails.begin(), rails.end());
    if (graph_.endpoints.size() > 65'000 || (!rails.empty() && *rails.rbegin() > 253))
      throw RunError(
          fmt::format("an emulated cluster has {} endpoints and {} NICs a node; allowed: at most "
                      "65,000 and 254",
                      graph_.endpoints.size(), *rails.rbegin() + 1));
  }

  bool built(LinkId l) const { return cluster_.bandwidth(l) <= most_; }

  // The elements of the union-find are, for link number i, its tail 2 i and its head 2 i + 1, followed by the
  // endpoints.
  void number_links() {
    const auto add = [&](LinkId l) {
      if (number_.emplace(l, static_cast<int>(links_.size())).second) links_.push_back(l);
    };
    for (const Way& way : ways_)
      for (const LinkId l : way.links) add(l);
    reverse_.assign(links_.size(), -1);
    const std::size_t used = links_.size();
    for (std::size_t i = 0; i < used; ++i) {
      const std::vector<LinkId> pair = cluster_.find_links(cable_name(cluster_.link_name(links_[i])));
      if (pair.size() != 2) continue;
      const LinkId other = pair[0] == links_[i] ? pair[1] : pair[0];
      add(other);
      reverse_.resize(links_.size(), -1);
      reverse_[i] = number_.at(other);
      reverse_[number_.at(other)] = static_cast<int>(i);
    }
    parent_.resize(2 * links_.size() + graph_.endpoints.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    members_.resize(parent_.size());
    for (std::size_t i = 0; i < graph_.endpoints.size(); ++i)
      members_[element_of(graph_.endpoints[i])] = {graph_.endpoints[i]};
    for (const Way& way : ways_) {
      const bool slow = std::any_of(way.links.begin(), way.links.end(), [&](LinkId l) { return built(l); });
      if (slow) apart_.insert(std::minmax(way.ends.from, way.ends.to));
    }
  }

  int tail(LinkId l) const { return 2 * number_.at(l); }
  int head(LinkId l) const { return 2 * number_.at(l) + 1; }
  int element_of(Endpoint e) const {
    const auto at = std::lower_bound(graph_.endpoints.begin(), graph_.endpoints.end(), e);
    return static_cast<int>(2 * links_.size() + (at - graph_.endpoints.begin()));
  }

  int find(int x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }

  void unite(int a, int b) {
    a = find(a), b = find(b);
    if (a == b) return;
    if (b < a) std::swap(a, b);
    parent_[b] = a;
    members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
    members_[b].clear();
  }

  // Returns false if this would unite both ends of a built link, or endpoints with a built link between them.
  bool may_unite(int a, int b) {
    a = find(a), b = find(b);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!built(links_[i])) continue;
      const int from = find(2 * static_cast<int>(i)), to = find(2 * static_cast<int>(i) + 1);
      if ((from == a && to == b) || (from == b && to == a)) return false;
    }
    for (const Endpoint e : members_[a])
      for (const Endpoint f : members_[b])
        if (apart_.count(std::minmax(e, f)) > 0) return false;
    return true;
  }

  void join_links() {
    for (const Way& way : ways_) {
      for (std::size_t i = 1; i < way.links.size(); ++i) unite(head(way.links[i - 1]), tail(way.links[i]));
      if (way.links.empty()) unite(element_of(way.ends.from), element_of(way.ends.to));
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (reverse_[i] < 0) continue;
      unite(2 * static_cast<int>(i), 2 * reverse_[i] + 1);
      unite(2 * static_cast<int>(i) + 1, 2 * reverse_[i]);
    }
  }

  void attach_endpoints() {
    const auto attach = [&](Endpoint e, int end) {
      const int element = element_of(e);
      if (find(element) == find(end)) return;
      if (may_unite(element, end)) return unite(element, end);
      for (const Port& port : ports_)
        if (port.endpoint == element && find(port.end) == find(end)) return;
      ports_.push_back({element, end});
    };
    for (const Way& way : ways_) {
      if (way.links.empty()) continue;
      attach(way.ends.from, tail(way.links.front()));
      attach(way.ends.to, head(way.links.back()));
    }
  }

  void contract_fast_links() {
    std::set<std::string> named;
    for (const LinkId l : links_) {
      if (built(l)) continue;
      if (find(tail(l)) != find(head(l)) && may_unite(tail(l), head(l))) unite(tail(l), head(l));
      graph_.left_out.push_back({cluster_.link_name(l), cluster_.bandwidth(l)});
    }
    std::sort(graph_.left_out.begin(), graph_.left_out.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  // Numbers hosts in the order of their endpoints, then switches in the order of their first link.
  void make_vertices() {
    const auto vertex = [&](int element) {
      const int root = find(element);
      const auto [it, added] = vertex_.emplace(root, static_cast<int>(graph_.vertices.size()));
      if (added) graph_.vertices.emplace_back();
      return it->second;
    };
    for (const Endpoint e : graph_.endpoints) {
      auto& host = graph_.vertices[vertex(element_of(e))];
      host.name += (host.name.empty() ? "" : "+") + cluster_.endpoint_name(e);
      host.endpoints.push_back(e);
    }
    const std::size_t hosts = graph_.vertices.size();
    for (const LinkId l : links_) {
      for (const bool at_head : {false, true}) {
        const auto number = static_cast<std::size_t>(vertex(at_head ? head(l) : tail(l)));
        auto& name = graph_.vertices[number].name;
        if (number >= hosts && name.empty()) name = end_name(cluster_.link_name(l), at_head);
      }
    }
    for (std::size_t i = hosts; i < graph_.vertices.size(); ++i)
      if (graph_.vertices[i].name.empty()) graph_.vertices[i].name = fmt::format("switch{}", i - hosts);
  }

  EmulationGraph::Direction direction(int number) const {
    const LinkId l = links_[number];
    return {cluster_.link_name(l), built(l) ? cluster_.bandwidth(l) : 0, cluster_.latency_s(l)};
  }

  void make_cables() {
    cable_of_.assign(links_.size(), -1);
    for (int i = 0; i < static_cast<int>(links_.size()); ++i) {
      if (cable_of_[i] >= 0) continue;
      const int a = vertex_.at(find(2 * i)), b = vertex_.at(find(2 * i + 1));
      if (a == b) continue;
      EmulationGraph::Cable cable;
      cable.name = cable_name(cluster_.link_name(links_[i]));
      cable.a = a;
      cable.b = b;
      cable.forth = direction(i);
      cable_of_[i] = static_cast<int>(graph_.cables.size());
      if (reverse_[i] >= 0) {
        cable.back = direction(reverse_[i]);
        cable_of_[reverse_[i]] = cable_of_[i];
      }
      graph_.cables.push_back(std::move(cable));
    }
    for (const Port& port : ports_) {
      const int a = vertex_.at(find(port.endpoint)), b = vertex_.at(find(port.end));
      if (a == b) continue;
      const auto same = std::find_if(graph_.cables.begin(), graph_.cables.end(), [&](const auto& c) {
        return c.forth.name.empty() && c.a == a && c.b == b;
      });
      if (same != graph_.cables.end()) continue;
      EmulationGraph::Cable cable;
      cable.name = fmt::format("{}.port{}", graph_.vertices[a].name, b);
      cable.a = a;
      cable.b = b;
      graph_.cables.push_back(std::move(cable));
    }
  }

  int port_between(int a, int b) const {
    for (std::size_t i = 0; i < graph_.cables.size(); ++i) {
      const auto& c = graph_.cables[i];
      if (c.forth.name.empty() && std::minmax(c.a, c.b) == std::minmax(a, b)) return static_cast<int>(i);
    }
    throw RunError(fmt::format("no route leads from {} to {} in the emulated cluster",
                               graph_.vertices[a].name, graph_.vertices[b].name));
  }

  void make_forwards() {
    for (const Way& way : ways_) {
      std::vector<std::pair<int, int>> hops;  // vertex, and the cable through which it is left
      int at = vertex_.at(find(element_of(way.ends.from)));
      double bandwidth = 0, latency_s = 0;
      const auto step_to = [&](int vertex) {  // through a port if the next link starts elsewhere
        if (vertex == at) return;
        hops.emplace_back(at, port_between(at, vertex));
        at = vertex;
      };
      for (const LinkId l : way.links) {
        step_to(vertex_.at(find(tail(l))));
        const int next = vertex_.at(find(head(l)));
        if (next == at) continue;
        hops.emplace_back(at, cable_of_[number_.at(l)]);
        if (built(l)) {
          bandwidth = bandwidth > 0 ? std::min(bandwidth, cluster_.bandwidth(l)) : cluster_.bandwidth(l);
          latency_s += cluster_.latency_s(l);
        }
        at = next;
      }
      step_to(vertex_.at(find(element_of(way.ends.to))));
      std::set<int> seen = {at};
      for (const auto& [vertex, cable] : hops)
        if (!seen.insert(vertex).second)
          throw RunError(fmt::format("the route from {} to {} passes {} twice and cannot be emulated",
                                     cluster_.endpoint_name(way.ends.from),
                                     cluster_.endpoint_name(way.ends.to), graph_.vertices[vertex].name));
      for (std::size_t i = 0; i < hops.size(); ++i)
        graph_.forwards.push_back({hops[i].first, graph_.address(way.ends.from, way.ends.rail),
                                   graph_.address(way.ends.to, way.ends.rail), hops[i].second, i == 0,
                                   i == 0 ? bandwidth : 0, i == 0 ? latency_s : 0});
    }
    std::sort(graph_.forwards.begin(), graph_.forwards.end(), [](const auto& x, const auto& y) {
      return std::tie(x.vertex, x.destination, x.source) < std::tie(y.vertex, y.destination, y.source);
    });
  }

  const Cluster& cluster_;
  double most_;
  EmulationGraph graph_;
  std::vector<Way> ways_;
  std::map<LinkId, int> number_;
  std::vector<LinkId> links_;
  std::vector<int> reverse_;   // index of the cable's other direction
  std::vector<int> cable_of_;  // by index of a link
  std::vector<int> parent_;
  std::vector<std::vector<Endpoint>> members_;  // by root
  std::set<std::pair<Endpoint, Endpoint>> apart_;
  std::vector<Port> ports_;
  std::map<int, int> vertex_;  // by root
};

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? fmt::format("{:g} Mbit/s", bytes_per_s * 8e-6) : "not limited";
}

}  // namespace

int EmulationGraph::vertex_of(Endpoint e) const {
  for (std::size_t i = 0; i < vertices.size(); ++i)
    if (std::find(vertices[i].endpoints.begin(), vertices[i].endpoints.end(), e) !=
        vertices[i].endpoints.end())
      return static_cast<int>(i);
  throw std::out_of_range(fmt::format("endpoint {}", e));
}

std::string EmulationGraph::address(Endpoint e, int rail) const {
  const auto at = std::lower_bound(endpoints.begin(), endpoints.end(), e);
  if (at == endpoints.end() || *at != e) throw std::out_of_range(fmt::format("endpoint {}", e));
  const auto number = at - endpoints.begin() + 1;
  return fmt::format("10.{}.{}.{}", std::max(rail, -1) + 1, number / 256, number % 256);
}

EmulationGraph emulation_graph(const Cluster& cluster, std::vector<Endpoint> endpoints,
                               const std::vector<Conversation>& conversations, double most_bandwidth) {
  return Deriver(cluster, std::move(endpoints), conversations, most_bandwidth).derive();
}

std::string describe(const EmulationGraph& graph) {
  std::string text;
  for (const auto& v : graph.vertices) text += (v.endpoints.empty() ? "switch " : "host ") + v.name + "\n";
  for (const auto& c : graph.cables)
    text += fmt::format("cable {}: {} to {}, {} forth, {} back\n", c.name, graph.vertices[c.a].name,
                        graph.vertices[c.b].name, rate_text(c.forth.bandwidth), rate_text(c.back.bandwidth));
  for (const auto& f : graph.forwards)
    text += fmt::format("at {}: {} to {} by {}\n", graph.vertices[f.vertex].name, f.source, f.destination,
                        graph.cables[f.cable].name);
  for (const auto& l : graph.left_out) text += fmt::format("left out {}\n", l.name);
  return text;
}

}  // namespace rehearse
