#include "gui/models/topology/topology_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "topologies/cabling.hpp"

namespace rehearse::gui {

namespace {

constexpr int kMostNodes = 64;     // more nodes are not drawn individually
constexpr int kMostColumns = 16;   // units side by side, and switches above them
constexpr int kMostSwitches = 48;  // in all units
constexpr int kMostOnGrid = 400;   // nodes of a torus

// Returns the switch that a network card is connected to, according to the fabric; empty if the card connects
// nodes directly.
std::string socket_of(const Cluster& cluster, int node, int nic) {
  const Fabric& fabric = cluster.fabric();
  const std::int64_t port = std::int64_t{node} * cluster.node().nics + nic;
  switch (fabric.kind) {
    case Fabric::Kind::single_switch:
      return "switch";
    case Fabric::Kind::leaf_spine:
      return fmt::format("leaf{}", node / fabric.nodes_per_leaf);
    case Fabric::Kind::rail:
      return fmt::format("group{}.rail{}", node / fabric.nodes_per_leaf, nic);
    case Fabric::Kind::fat_tree:
      return fmt::format("edge{}", port / ports_down(fabric, cluster.node()));
    case Fabric::Kind::dragonfly:
      return fmt::format("router{}", node / fabric.nodes_per_router);
    case Fabric::Kind::links:
    case Fabric::Kind::ring:
    case Fabric::Kind::torus:
      break;
  }
  return {};
}

// Splits a name into what precedes its trailing number, and the number; -1 if there is none.
std::pair<std::string_view, int> split(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  int number = -1;
  is_number(name, name.substr(0, digits), number);
  return {name.substr(0, digits), number};
}

std::string plural_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kNouns = {
      {{"node", "nodes"},
       {"server", "servers"},
       {"leaf", "leaves"},
       {"spine", "spines"},
       {"edge", "edge switches"},
       {"agg", "aggregation switches"},
       {"core", "core switches"},
       {"router", "routers"},
       {"idle", "idle places"}}};
  const std::string_view kind = split(name).first;
  for (const auto& [one, many] : kNouns)
    if (kind == one) return std::string(many);
  return kind.ends_with(".rail") ? "rail switches" : "switches";
}

std::string range_of(const std::string& first, const std::string& last) {
  const auto a = split(first), b = split(last);
  if (first == last) return first;
  return a.first == b.first && a.second >= 0 ? fmt::format("{}-{}", first, b.second)
                                             : fmt::format("{} - {}", first, last);
}

int power_of_two_from(int least) {
  int power = 1;
  while (power < least) power *= 2;
  return power;
}

}  // namespace

Topology::Topology(std::shared_ptr<const Cluster> cluster)
    : cluster_(std::move(cluster)), where_(cluster_->links(), 0) {
  const int nodes = cluster_->nodes(), servers = nodes + cluster_->server_nodes();
  for (int n = 0; n < servers; ++n)
    places_.push_back({n < nodes ? Place::Kind::node : Place::Kind::server, node_name_of(n, nodes)});
  for (const Storage& storage : cluster_->storages())
    for (int server = 0; server < storage.servers; ++server)
      places_.push_back({Place::Kind::server, fmt::format("{}{}", storage.name, server)});
  const int all = hosts_ = static_cast<int>(places_.size());
  std::unordered_map<std::string, int> named;
  for (int n = 0; n < all; ++n) named[places_[n].name] = n;
  const auto place_named = [&](const std::string& name) {
    const auto [it, fresh] = named.try_emplace(name, static_cast<int>(places_.size()));
    if (fresh) {
      int number = 0;
      places_.push_back(
          {is_number(name, "idle", number) ? Place::Kind::idle : Place::Kind::fabric_switch, name});
    }
    return it->second;
  };
  for (LinkId link = 0; link < cluster_->links(); ++link) {
    const std::string name = cluster_->link_name(link);
    const std::size_t dot = name.find('.'), dash = name.find('-');
    const auto owner = dot == std::string::npos ? named.end() : named.find(name.substr(0, dot));
    const bool of_node =
        owner != named.end() && owner->second < all && (dash == std::string::npos || dot < dash);
    if (of_node) {
      const int node = owner->second;
      std::string_view rest = std::string_view(name).substr(dot);
      int nic = 0;
      const std::string socket =
          all > 1 && take_number(rest, ".nic", nic) ? socket_of(*cluster_, node, nic) : "";
      where_[link] = -1 - node;
      if (socket.empty()) continue;
      if (rest == ".out") cables_.push_back({node, place_named(socket), link, link + 1});
      where_[link] = static_cast<int>(cables_.size()) - 1;
      continue;
    }
    if (dash == std::string::npos) {
      where_[link] = kNowhere;
      continue;
    }
    if (!cables_.empty() && cables_.back().back == link) {
      where_[link] = static_cast<int>(cables_.size()) - 1;
      continue;
    }
    where_[link] = static_cast<int>(cables_.size());
    cables_.push_back(
        {place_named(name.substr(0, dash)), place_named(name.substr(dash + 1)), link, link + 1});
  }
  find_layers();
  find_units();
  find_groups();
}

// Sets each switch's layer to its distance in cables from the nearest node; in a Clos fabric this is its
// tier.
void Topology::find_layers() {
  std::vector<std::vector<int>> next(places_.size());
  for (const Cable& cable : cables_) {
    next[cable.a].push_back(cable.b);
    next[cable.b].push_back(cable.a);
  }
  std::deque<int> queue;
  for (std::size_t p = 0; p < places_.size(); ++p) {
    const bool is_switch = places_[p].kind == Place::Kind::fabric_switch;
    places_[p].layer = is_switch ? -1 : 0;
    if (!is_switch) queue.push_back(static_cast<int>(p));
  }
  while (!queue.empty()) {
    const int at = queue.front();
    queue.pop_front();
    for (const int to : next[at]) {
      if (places_[to].layer >= 0) continue;
      places_[to].layer = places_[at].layer + 1;
      queue.push_back(to);
    }
  }
  // Switches of a tier without connected nodes would be reached from above, so set known tiers by name.
  for (Place& place : places_) {
    const std::string_view kind = split(place.name).first;
    if (place.kind != Place::Kind::fabric_switch) continue;
    place.layer = std::max(place.layer, 1);
    if (cluster_->fabric().kind == Fabric::Kind::links) continue;
    if (kind == "leaf" || kind == "edge" || kind == "router" || kind.ends_with(".rail")) place.layer = 1;
    if (kind == "agg" || kind == "spine") place.layer = 2;
    if (kind == "core") place.layer = 3;
  }
  for (Cable& cable : cables_) {
    layers_ = std::max({layers_, places_[cable.a].layer + 1, places_[cable.b].layer + 1});
    if (places_[cable.a].layer <= places_[cable.b].layer) continue;
    std::swap(cable.a, cable.b);
    std::swap(cable.there, cable.back);
  }
}

void Topology::find_units() {
  const Fabric& fabric = cluster_->fabric();
  const int all = hosts_;
  // First the switches, then the nodes according to the switch of their first cable.
  for (Place& place : places_) {
    const auto [kind, number] = split(place.name);
    if (place.kind != Place::Kind::fabric_switch || number < 0) continue;
    if (fabric.kind == Fabric::Kind::leaf_spine && kind == "leaf") place.unit = number;
    if (fabric.kind == Fabric::Kind::dragonfly) place.unit = number / fabric.routers_per_group;
    if (fabric.kind == Fabric::Kind::fat_tree && kind == "edge") place.unit = number / (fabric.radix / 2);
    if (fabric.kind == Fabric::Kind::fat_tree && kind == "agg")
      place.unit = number / (fabric.radix - ports_down(fabric, cluster_->node()));
    if (fabric.kind == Fabric::Kind::rail && kind.ends_with(".rail")) {
      std::string_view text = place.name;
      take_number(text, "group", place.unit);
    }
  }
  int run = 0;  // number of consecutive nodes that form a unit
  if (fabric.kind == Fabric::Kind::single_switch || fabric.kind == Fabric::Kind::ring) {
    if (all > kMostNodes) run = power_of_two_from((all + kMostColumns - 1) / kMostColumns);
  } else if (fabric.kind == Fabric::Kind::torus) {
    int places = 1;
    for (const int size : fabric.dims) places *= size;
    if (places > kMostOnGrid) run = places / fabric.dims.back();
  }
  if (run > 0) {
    for (std::size_t p = 0; p < places_.size(); ++p) {
      int number = static_cast<int>(p);
      if (places_[p].kind == Place::Kind::idle) is_number(places_[p].name, "idle", number);
      if (places_[p].kind != Place::Kind::fabric_switch) places_[p].unit = number / run;
    }
    return;
  }
  std::map<int, int> unit_of_switch;  // in a graph given link by link: by the switch of each node
  for (const Cable& cable : cables_) {
    Place& node = places_[cable.a];
    if (node.layer != 0 || places_[cable.b].layer == 0 || node.unit >= 0) continue;
    node.unit = places_[cable.b].unit;
    if (fabric.kind != Fabric::Kind::links) continue;
    Place& leaf = places_[cable.b];
    leaf.unit = unit_of_switch.try_emplace(cable.b, static_cast<int>(unit_of_switch.size())).first->second;
    node.unit = leaf.unit;
  }
}

void Topology::find_groups() {
  std::map<int, int> nodes_of_unit;
  std::map<int, int> above;  // switches above all units, by layer
  int nodes = 0, switches = 0, units = 0;
  for (const Place& place : places_) {
    units = std::max(units, place.unit + 1);
    if (place.layer == 0) {
      ++nodes;
      ++nodes_of_unit[place.unit];
    } else if (place.unit >= 0) {
      ++switches;
    } else {
      ++above[place.layer];
    }
  }
  std::vector<int> block_of(units, -1), group_of(units, -1);
  if (units > kMostColumns) {
    const int run = power_of_two_from((units + kMostColumns - 1) / kMostColumns);
    for (int unit = 0; unit < units; ++unit) {
      if (unit % run == 0) groups_.push_back({-1, unit});
      block_of[unit] = static_cast<int>(groups_.size()) - 1;
    }
  }
  const bool with_switches = switches > kMostSwitches;
  for (int unit = 0; unit < units; ++unit) {
    const bool many = nodes_of_unit[unit] > 4 && nodes > kMostNodes;
    const bool wide = with_switches && switches / units > 4;
    if (!many && !wide) continue;
    group_of[unit] = static_cast<int>(groups_.size());
    groups_.push_back({block_of[unit], unit});
  }
  std::map<int, int> top;
  for (const auto& [layer, count] : above) {
    if (count <= kMostColumns) continue;
    top[layer] = static_cast<int>(groups_.size());
    groups_.push_back({-1, -1});
  }
  for (Place& place : places_) {
    if (place.unit < 0) {
      const auto it = top.find(place.layer);
      if (it != top.end() && place.layer > 0) place.group = it->second;
      continue;
    }
    const bool in_unit = group_of[place.unit] >= 0 && (place.layer == 0 || with_switches);
    place.group = in_unit ? group_of[place.unit] : block_of[place.unit];
  }
}

std::set<int> Topology::groups_around(int place) const {
  std::set<int> around;
  for (int group = places_[place].group; group >= 0; group = groups_[group].parent) around.insert(group);
  return around;
}

ShownGraph shown_graph(const Topology& topology, const std::set<int>& open) {
  ShownGraph shown;
  const std::vector<Place>& places = topology.places();
  std::map<std::pair<int, int>, int> of_group;  // by group and layer
  for (int p = 0; p < static_cast<int>(places.size()); ++p) {
    int closed = -1;  // the outermost closed group
    for (int group = places[p].group; group >= 0; group = topology.groups()[group].parent)
      if (open.count(group) == 0) closed = group;
    const int fresh = static_cast<int>(shown.vertices.size());
    const int vertex =
        closed < 0 ? fresh : of_group.try_emplace({closed, places[p].layer}, fresh).first->second;
    shown.vertex_of.push_back(vertex);
    if (vertex == fresh) {
      shown.vertices.push_back({p, p, closed, 0, places[p].layer, places[p].unit, places[p].name, ""});
    }
    ++shown.vertices[vertex].members;
    shown.vertices[vertex].last_place = p;
  }
  for (ShownGraph::Vertex& vertex : shown.vertices) {
    if (vertex.members == 1) continue;
    const std::string& first = places[vertex.place].name;
    vertex.title = fmt::format("{} {}", vertex.members, plural_of(first));
    vertex.detail = range_of(first, places[vertex.last_place].name);
  }
  std::map<std::pair<int, int>, int> edge_of;
  for (int c = 0; c < static_cast<int>(topology.cables().size()); ++c) {
    const Cable& cable = topology.cables()[c];
    int a = shown.vertex_of[cable.a], b = shown.vertex_of[cable.b];
    const bool turned = a > b;
    if (turned) std::swap(a, b);
    const auto [it, fresh] = edge_of.try_emplace({a, b}, static_cast<int>(shown.edges.size()));
    if (fresh) shown.edges.push_back({a, b, {}, {}});
    shown.edges[it->second].cables.push_back(c);
    shown.edges[it->second].turned.push_back(turned);
  }
  return shown;
}

std::string cluster_line(const Cluster& cluster) {
  const std::string servers =
      cluster.server_nodes() > 0 ? fmt::format(" + {} servers", cluster.server_nodes()) : "";
  const auto kind = static_cast<std::size_t>(cluster.fabric().kind);
  return fmt::format(
      "{} x {}{}, {}", cluster.name, cluster.nodes(), servers,
      cluster.nodes() + cluster.server_nodes() > 1 ? std::string(kFabricNames[kind]) : "one node");
}

}  // namespace rehearse::gui
