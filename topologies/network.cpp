#include "topologies/network.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

namespace rehearse {
Network::Network(const ClusterParts& parts) {
  name = parts.name;
  changes = parts.changes;
  sources = parts.sources;
  network_basis = parts.network_basis;
  node_ = parts.node;
  fabric_ = parts.fabric;
  nodes_ = parts.nodes;
  server_nodes_ = parts.server_nodes;
  total_nodes_ = nodes_ + server_nodes_;
  int first = nodes_;
  for (const ClusterParts::Group& group : parts.groups) first -= group.nodes;
  for (const ClusterParts::Group& group : parts.groups) {
    groups_.push_back({first, group.device});
    first += group.nodes;
  }

  if (node_.interconnect == Node::Interconnect::nvswitch) nvlinks_ = 2 * node_.devices;
  if (node_.interconnect == Node::Interconnect::nvlink_mesh) {
    nvlinks_ = 2 * static_cast<int>(node_.mesh.size());
    mesh_pair_.assign(static_cast<std::size_t>(node_.devices) * node_.devices, -1);
    for (std::size_t i = 0; i < node_.mesh.size(); ++i) {
      auto& m = node_.mesh[i];
      if (m.a > m.b) std::swap(m.a, m.b);
      mesh_pair_[static_cast<std::size_t>(m.a) * node_.devices + m.b] = static_cast<int>(i);
      mesh_pair_[static_cast<std::size_t>(m.b) * node_.devices + m.a] = static_cast<int>(i);
    }
  }
  if (node_.pcie_bandwidth > 0) {
    pcie_ = 2 * (node_.devices + 1);
    for (const auto& level : node_.pcie_switches)
      pcie_ += 2 * ((node_.devices + level.devices - 1) / level.devices);
    first_socket_ = pcie_ / 2;
    if (node_.sockets > 1) pcie_ += 2 * node_.sockets;
    server_pcie_ = 2;
  }
  if (node_.nic_bandwidth > 0) nics_ = 2 * node_.nics;
  node_links_ = nvlinks_ + pcie_ + nics_;
  server_links_ = server_pcie_ + nics_;

  std::int64_t count = std::int64_t{nodes_} * node_links_;
  const std::int64_t servers_base = count;
  count += std::int64_t{server_nodes_} * server_links_;
  const std::int64_t fabric_base = count;
  if (fabric_.kind == Fabric::Kind::links) {
    std::vector<std::string> names;
    for (int i = 0; i < total_nodes_; ++i) names.push_back(node_name(i));
    cables_ = parts.graph;
    graph_ = std::make_unique<FabricGraph>(names, cables_, parts.place);
    count += 2 * static_cast<std::int64_t>(cables_.size());
  }
  wiring_ = make_cabling(fabric_, node_, nodes_, server_nodes_);
  if (wiring_) count += 2 * wiring_->cables();
  if (count > std::numeric_limits<int>::max())
    throw InputError(parts.place, fmt::format("the cluster has {} links; allowed: at most {}", count,
                                              std::numeric_limits<int>::max()));
  servers_base_ = static_cast<LinkId>(servers_base);
  fabric_base_ = static_cast<LinkId>(fabric_base);
  links_ = static_cast<int>(count);

  std::map<LinkId, double> factors;
  for (const auto& slow : parts.slow_links) {
    const std::vector<LinkId> found = find_links(slow.name);
    if (found.empty())
      throw InputError(parts.place,
                       fmt::format("there is no link \"{}\"; allowed: names such as {}",
                                   slow.name.substr(0, 100), links_ > 0 ? link_name(links_ - 1) : "none"));
    for (const LinkId l : found) factors.emplace(l, 1.0).first->second *= slow.factor;
  }
  slow_.assign(factors.begin(), factors.end());
  for (const auto& slow : parts.slow_devices)
    device_factors_.emplace(slow.device, 1.0).first->second *= slow.factor;
}

std::int64_t Network::switch_ports() const {
  if (total_nodes_ == 1) return 0;
  if (graph_) {
    std::set<std::string> names;
    for (int i = 0; i < total_nodes_; ++i) names.insert(node_name(i));
    std::int64_t ports = 0;
    for (const ClusterParts::GraphLink& cable : cables_)
      ports += static_cast<std::int64_t>(2 - names.count(cable.a) - names.count(cable.b));
    return ports;
  }
  if (joins_nodes(fabric_.kind)) return 0;
  return std::int64_t{total_nodes_} * node_.nics + (wiring_ ? 2 * wiring_->cables() : 0);
}

Network::Link Network::decode(LinkId l) const {
  if (l < 0 || l >= links_) throw std::out_of_range(fmt::format("link {} of {}", l, links_));
  Link link;
  if (l >= fabric_base_) {
    link.kind = graph_ ? Kind::graph : Kind::fabric;
    link.number = (l - fabric_base_) / 2;
    link.back = (l - fabric_base_) % 2 != 0;
    return link;
  }
  int offset = 0;
  if (l >= servers_base_) {
    link.node = nodes_ + (l - servers_base_) / server_links_;
    offset = (l - servers_base_) % server_links_;
    link.number = offset / 2;
    if (offset < server_pcie_) {
      link.kind = Kind::pcie;
      link.number = node_.devices;
    } else {
      link.number = (offset - server_pcie_) / 2;
    }
  } else {
    link.node = l / node_links_;
    offset = l % node_links_;
    if (offset < nvlinks_) {
      link.kind = node_.interconnect == Node::Interconnect::nvswitch ? Kind::nvlink : Kind::mesh;
      link.number = offset / 2;
    } else if (offset < nvlinks_ + pcie_) {
      link.kind = Kind::pcie;
      link.number = (offset - nvlinks_) / 2;
    } else {
      link.number = (offset - nvlinks_ - pcie_) / 2;
    }
  }
  link.back = offset % 2 != 0;
  return link;
}

double Network::bandwidth(LinkId l) const {
  const Link link = decode(l);
  double bytes_per_s = 0;
  switch (link.kind) {
    case Kind::nvlink:
      bytes_per_s = node_.device_bandwidth;
      break;
    case Kind::mesh:
      bytes_per_s = node_.mesh[link.number].count * node_.device_bandwidth;
      break;
    case Kind::pcie:
      bytes_per_s = is_socket(link.number) ? node_.inter_socket_bandwidth
                    : link.number > node_.devices
                        ? level_of(link.number).bandwidth
                        : node_.pcie_bandwidth * (link.number == node_.devices ? node_.nics : 1);
      break;
    case Kind::nic:
      bytes_per_s = node_.nic_bandwidth;
      break;
    case Kind::fabric:
      bytes_per_s = wiring_->bandwidth(link.number);
      break;
    case Kind::graph:
      bytes_per_s = cables_[link.number].bandwidth;
      break;
  }
  if (slow_.empty()) return bytes_per_s;
  const auto it = std::lower_bound(slow_.begin(), slow_.end(), std::make_pair(l, 0.0));
  return it != slow_.end() && it->first == l ? bytes_per_s * it->second : bytes_per_s;
}

double Network::latency_s(LinkId l) const {
  const Link link = decode(l);
  switch (link.kind) {
    case Kind::nvlink:
      return link.back ? 0 : node_.device_latency_s;
    case Kind::mesh:
      return node_.device_latency_s;
    case Kind::pcie: {
      const bool devices_talk_over_it = node_.interconnect == Node::Interconnect::pcie ||
                                        node_.interconnect == Node::Interconnect::nvlink_mesh;
      return devices_talk_over_it && !link.back && link.number <= node_.devices ? node_.device_latency_s : 0;
    }
    case Kind::nic:
      return (joins_nodes(fabric_.kind) ? 0 : fabric_.latency_s) + (link.back ? 0 : node_.nic_latency_s);
    case Kind::fabric:
      return fabric_.latency_s;
    case Kind::graph:
      return cables_[link.number].latency_s;
  }
  return 0;
}

LinkPlace Network::link_place(LinkId l) const {
  const Link link = decode(l);
  switch (link.kind) {
    case Kind::nvlink:
    case Kind::mesh:
    case Kind::pcie:
      return {LinkPlace::Kind::inside_node, link.node >= nodes_};
    case Kind::nic:
      return {LinkPlace::Kind::network_card, link.node >= nodes_};
    case Kind::fabric:
    case Kind::graph:
      break;
  }
  return {LinkPlace::Kind::fabric, false};
}

int Network::nodes_per_equal_block() const {
  if (graph_ || !slow_.empty() || !device_factors_.empty() || !groups_.empty()) return 0;
  return wiring_ ? wiring_->nodes_per_equal_block() : 1;
}

int Network::node_beside(LinkId l) const {
  const Link link = decode(l);
  return link.kind == Kind::fabric ? wiring_->node_beside(link.number) : link.node;
}

std::string Network::link_name(LinkId l) const {
  const Link link = decode(l);
  const char* const direction = link.back ? "in" : "out";
  switch (link.kind) {
    case Kind::nvlink:
      return fmt::format("{}.gpu{}.nvlink.{}", node_name(link.node), link.number, direction);
    case Kind::mesh: {
      const auto& m = node_.mesh[link.number];
      return fmt::format("{}.gpu{}-gpu{}", node_name(link.node), link.back ? m.b : m.a,
                         link.back ? m.a : m.b);
    }
    case Kind::pcie:
      if (link.number == node_.devices) return fmt::format("{}.cpu.pcie.{}", node_name(link.node), direction);
      if (is_socket(link.number))
        return fmt::format("{}.socket{}.{}", node_name(link.node), link.number - first_socket_, direction);
      if (link.number > node_.devices)
        return fmt::format("{}.switch{}.pcie.{}", node_name(link.node), link.number - node_.devices - 1,
                           direction);
      return fmt::format("{}.gpu{}.pcie.{}", node_name(link.node), link.number, direction);
    case Kind::nic:
      return fmt::format("{}.nic{}.{}", node_name(link.node), link.number, direction);
    case Kind::fabric: {
      const Cabling::Ends ends = wiring_->ends(link.number);
      return link.back ? ends.b + "-" + ends.a : ends.a + "-" + ends.b;
    }
    case Kind::graph: {
      const auto& c = cables_[link.number];
      return link.back ? c.b + "-" + c.a : c.a + "-" + c.b;
    }
  }
  return {};
}

std::vector<LinkId> Network::cable(LinkId first, bool back, char direction) const {
  if (direction == 'o') return {first};
  if (direction == 'i') return {first + 1};
  if (back) return {first + 1, first};
  return {first, first + 1};
}

std::vector<LinkId> Network::find_links(const std::string& wanted) const {
  for (std::size_t i = 0; i < cables_.size(); ++i) {
    const LinkId first = fabric_base_ + 2 * static_cast<LinkId>(i);
    if (wanted == cables_[i].a + "-" + cables_[i].b) return cable(first, false, 0);
    if (wanted == cables_[i].b + "-" + cables_[i].a) return cable(first, true, 0);
  }
  std::string_view text = wanted;
  const std::size_t dash = text.find('-');
  if (wiring_ && dash != std::string_view::npos) {
    const int found = wiring_->find(text.substr(0, dash), text.substr(dash + 1));
    if (found >= 0) return cable(fabric_base_ + found - found % 2, found % 2 != 0, 0);
  }

  int node = 0;
  const bool server = text.substr(0, 6) == "server";
  if (!take_number(text, server ? "server" : "node", node) || node >= (server ? server_nodes_ : nodes_))
    return {};
  if (server) node += nodes_;
  char direction = 0;
  for (const std::string_view ending : {".out", ".in"}) {
    if (text.size() > ending.size() && text.substr(text.size() - ending.size()) == ending) {
      direction = ending[1];
      text.remove_suffix(ending.size());
      break;
    }
  }
  int number = 0;
  if (take_number(text, ".nic", number))
    return text.empty() && 2 * number < nics_ ? cable(nic(node, number, false), false, direction)
                                              : std::vector<LinkId>{};
  if (text == ".cpu.pcie")
    return pcie_ > 0 ? cable(pcie(node, node_.devices, false), false, direction) : std::vector<LinkId>{};
  if (!server && take_number(text, ".switch", number))
    return text == ".pcie" && node_.devices + 1 + std::int64_t{number} < first_socket_
               ? cable(pcie(node, node_.devices + 1 + number, false), false, direction)
               : std::vector<LinkId>{};
  if (!server && take_number(text, ".socket", number))
    return text.empty() && 2 * (first_socket_ + std::int64_t{number}) < pcie_
               ? cable(pcie(node, first_socket_ + number, false), false, direction)
               : std::vector<LinkId>{};
  if (server || !take_number(text, ".gpu", number) || number >= node_.devices) return {};
  if (text == ".pcie" && pcie_ > 0) return cable(pcie(node, number, false), false, direction);
  if (text == ".nvlink" && node_.interconnect == Node::Interconnect::nvswitch)
    return cable(nvlink(node, number, false), false, direction);
  int peer = 0;
  if (take_number(text, "-gpu", peer) && text.empty() && peer < node_.devices && direction == 0 &&
      !mesh_pair_.empty() && mesh_pair(number, peer) >= 0)
    return cable(node_base(node) + 2 * mesh_pair(number, peer), number > peer, 0);
  return {};
}

LinkId Network::node_base(int node) const {
  return node < nodes_ ? node * node_links_ : servers_base_ + (node - nodes_) * server_links_;
}

LinkId Network::pcie(int node, int port, bool back) const {
  return node < nodes_ ? node_base(node) + nvlinks_ + 2 * port + back : node_base(node) + back;
}

LinkId Network::nic(int node, int number, bool back) const {
  return node_base(node) + (node < nodes_ ? nvlinks_ + pcie_ : server_pcie_) + 2 * number + back;
}

const Node::PcieSwitches& Network::level_of(int port) const {
  int first = node_.devices + 1;
  for (const auto& level : node_.pcie_switches) {
    first += (node_.devices + level.devices - 1) / level.devices;
    if (port < first) return level;
  }
  throw std::out_of_range(fmt::format("PCIe port {}", port));
}

LinkId Network::uplink(int node, std::size_t level, int device, bool back) const {
  int port = node_.devices + 1 + device / node_.pcie_switches[level].devices;
  for (std::size_t l = 0; l < level; ++l)
    port += (node_.devices + node_.pcie_switches[l].devices - 1) / node_.pcie_switches[l].devices;
  return pcie(node, port, back);
}

int Network::place_of_nic(int nic_number) const {
  const int at_socket = node_.sockets > 1 ? kRoot - 1 - node_.socket_of_nic(nic_number) : kRoot;
  if (node_.pcie_switches.empty()) return at_socket;
  const int each = node_.pcie_switches.front().devices;
  const int innermost = (node_.devices + each - 1) / each;
  return node_.nics == innermost ? nic_number * each : at_socket;
}

int Network::socket_of(int place) const {
  if (place >= 0) return node_.socket_of_device(place);
  return place == kRoot ? -1 : kRoot - 1 - place;
}

void Network::route_switches(int node, int from, int to, std::vector<LinkId>& links) const {
  if (node >= nodes_) return;  // server nodes have none
  const std::size_t levels = node_.pcie_switches.size();
  const auto joined = [&](std::size_t level) {
    const int each = node_.pcie_switches[level].devices;
    return from >= 0 && to >= 0 && from / each == to / each;
  };
  for (std::size_t l = 0; l < levels && from >= 0 && !joined(l); ++l)
    links.push_back(uplink(node, l, from, false));
  if (const int a = socket_of(from), b = socket_of(to); node_.sockets > 1 && a >= 0 && b >= 0 && a != b)
    links.insert(links.end(), {pcie(node, first_socket_ + a, false), pcie(node, first_socket_ + b, true)});
  for (std::size_t l = levels; l-- > 0;)
    if (to >= 0 && !joined(l)) links.push_back(uplink(node, l, to, true));
}

void Network::route_inside(Endpoint from, Endpoint to, std::vector<LinkId>& links) const {
  const int node = node_of(from);
  if (from < devices() && to < devices()) {
    const int a = local_of(from), b = local_of(to);
    if (node_.interconnect == Node::Interconnect::nvswitch) {
      links.insert(links.end(), {nvlink(node, a, false), nvlink(node, b, true)});
      return;
    }
    if (node_.interconnect == Node::Interconnect::nvlink_mesh && mesh_pair(a, b) >= 0) {
      links.push_back(node_base(node) + 2 * mesh_pair(a, b) + (a > b));
      return;
    }
  }
  if (pcie_ == 0) return;
  const bool past_processor = !node_.pcie_switches.empty() && node < nodes_;
  if (from < devices() || !past_processor) links.push_back(pcie(node, port_of(from), false));
  route_switches(node, place_of(from), place_of(to), links);
  if (to < devices() || !past_processor) links.push_back(pcie(node, port_of(to), true));
}

void Network::route_to_nic(Endpoint from, int nic_number, std::vector<LinkId>& links) const {
  const int node = node_of(from);
  int port = port_of(from);
  if (from < devices() && node_.interconnect == Node::Interconnect::nvswitch && nic_of(port) != nic_number) {
    const int near = device_at_nic(nic_number);
    if (near != port) links.insert(links.end(), {nvlink(node, port, false), nvlink(node, near, true)});
    port = near;
  }
  if (pcie_ > 0) {
    links.push_back(pcie(node, port, false));
    route_switches(node, port < node_.devices ? port : kRoot, place_of_nic(nic_number), links);
  }
  if (nics_ > 0) links.push_back(nic(node, nic_number, false));
}

void Network::route_from_nic(Endpoint to, int nic_number, std::vector<LinkId>& links) const {
  const int node = node_of(to);
  const int port = port_of(to);
  const bool hand_over = to < devices() && node_.interconnect == Node::Interconnect::nvswitch &&
                         nic_of(port) != nic_number && device_at_nic(nic_number) != port;
  const int near = hand_over ? device_at_nic(nic_number) : port;
  if (nics_ > 0) links.push_back(nic(node, nic_number, true));
  if (pcie_ > 0) {
    route_switches(node, place_of_nic(nic_number), near < node_.devices ? near : kRoot, links);
    links.push_back(pcie(node, near, true));
  }
  if (hand_over) links.insert(links.end(), {nvlink(node, near, false), nvlink(node, port, true)});
}

void Network::route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const {
  if (from == to) return;
  const int a = node_of(from), b = node_of(to);
  if (a == b) return route_inside(from, to, links);
  if (rail >= node_.nics) throw std::out_of_range(fmt::format("NIC {} of {}", rail, node_.nics));
  const int from_nic = rail >= 0 ? rail : from < devices() ? nic_of(local_of(from)) : 0;
  const int to_nic = rail >= 0 ? rail : to < devices() ? nic_of(local_of(to)) : 0;
  route_to_nic(from, from_nic, links);
  if (graph_) {
    graph_->path(a, b, fabric_base_, links);
  } else if (wiring_) {
    wiring_->route({from, to, a, b, from_nic, to_nic}, fabric_base_, links);
  }
  route_from_nic(to, to_nic, links);
}

}  // namespace rehearse
