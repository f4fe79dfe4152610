#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

using Order = std::vector<Endpoint>;

// The members of one node in the order of one of the node's rings; processors come last.
Order ordered(const Cluster& cluster, const Order& members, const std::vector<int>& ring) {
  Order order = members;
  if (ring.empty()) return order;
  std::vector<int> place(ring.size(), 0);
  for (std::size_t i = 0; i < ring.size(); ++i) place[ring[i]] = static_cast<int>(i);
  const auto rank = [&](Endpoint e) {
    return e < cluster.devices() ? place[cluster.local_of(e)] : static_cast<int>(ring.size());
  };
  std::stable_sort(order.begin(), order.end(), [&](Endpoint a, Endpoint b) { return rank(a) < rank(b); });
  return order;
}

// Free NVLinks in each direction between two devices of a node.
using FreeLinks = std::map<std::pair<int, int>, int>;

// Takes one NVLink for every edge of the closed ring, if they are all there.
bool take_links(const Cluster& cluster, const Order& ring, FreeLinks& free) {
  FreeLinks left = free;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Endpoint a = ring[i], b = ring[(i + 1) % ring.size()];
    if (a >= cluster.devices() || b >= cluster.devices()) return false;
    const auto it = left.find({cluster.local_of(a), cluster.local_of(b)});
    if (it == left.end() || it->second == 0) return false;
    --it->second;
  }
  free.swap(left);
  return true;
}

// Orders in which rings run inside a node. On a mesh: as many of the node's rings, forwards and backwards, as
// there are NVLinks for, so that a subset of the devices gets the rings that it can have.
std::vector<Order> node_orders(const Cluster& cluster, const Order& members) {
  const Node& node = cluster.node();
  const bool mesh = node.interconnect == Node::Interconnect::nvlink_mesh;
  std::vector<Order> all;
  for (const std::vector<int>& ring : node.rings) {
    all.push_back(ordered(cluster, members, ring));
    if (mesh) all.emplace_back(all.back().rbegin(), all.back().rend());
  }
  if (all.empty()) {
    all.push_back(members);
    if (mesh) all.emplace_back(members.rbegin(), members.rend());
  }
  if (!mesh || members.size() < 2)
    return {all.begin(), all.begin() + (mesh ? 1 : static_cast<std::ptrdiff_t>(all.size()))};
  FreeLinks free;
  for (const auto& m : node.mesh) free[{m.a, m.b}] = free[{m.b, m.a}] = m.count;
  std::vector<Order> chosen;
  for (const Order& ring : all)
    if (take_links(cluster, ring, free)) chosen.push_back(ring);
  if (chosen.empty()) chosen.push_back(all.front());
  return chosen;
}

int nic_of_member(const Cluster& cluster, Endpoint e) {
  return e < cluster.devices() ? cluster.nic_of(cluster.local_of(e)) : 0;
}

struct NodeMembers {
  std::vector<Order> orders;
  std::vector<int> nics;  // of the members, each once, in the order of the first ring
};

}  // namespace

Rings ring_orders(const Cluster& cluster, const std::vector<Endpoint>& members, int channels) {
  std::map<int, std::size_t> index;
  std::vector<Order> grouped;
  for (const Endpoint e : members) {
    const auto [it, added] = index.emplace(cluster.node_of(e), grouped.size());
    if (added) grouped.emplace_back();
    grouped[it->second].push_back(e);
  }

  std::vector<NodeMembers> nodes;
  std::size_t most_members = 0, fewest_nics = members.size(), most_orders = 1;
  for (const Order& group : grouped) {
    NodeMembers& node = nodes.emplace_back();
    node.orders = node_orders(cluster, group);
    for (const Endpoint e : node.orders.front()) {
      const int nic = nic_of_member(cluster, e);
      if (std::find(node.nics.begin(), node.nics.end(), nic) == node.nics.end()) node.nics.push_back(nic);
    }
    most_members = std::max(most_members, group.size());
    fewest_nics = std::min(fewest_nics, node.nics.size());
    most_orders = std::max(most_orders, node.orders.size());
  }

  const bool mesh = cluster.node().interconnect == Node::Interconnect::nvlink_mesh;
  const std::size_t inside = mesh ? most_orders : 1;
  const bool several_nodes = nodes.size() > 1;
  fewest_nics = std::max<std::size_t>(fewest_nics, 1);
  const std::size_t usual = several_nodes ? fewest_nics : inside;
  const std::size_t most = several_nodes ? fewest_nics * inside : inside;
  const std::size_t count = channels > 0 ? std::min(static_cast<std::size_t>(channels), most) : usual;

  Rings rings;
  for (std::size_t c = 0; c < count; ++c) {
    const bool by_rail = several_nodes && most_members > 1;
    const int rail = by_rail ? nodes.front().nics[c % fewest_nics] : -1;
    std::vector<Endpoint>& order = rings.orders.emplace_back();
    order.reserve(members.size());
    for (const NodeMembers& node : nodes) {
      // Channels that share a NIC differ in the ring that they take inside the node.
      const std::size_t turn = several_nodes ? c + c / fewest_nics : c;
      const Order& inner = node.orders[turn % node.orders.size()];
      auto entry = inner.begin();
      if (by_rail) {
        entry = std::find_if(inner.begin(), inner.end(),
                             [&](Endpoint e) { return nic_of_member(cluster, e) == rail; });
        if (entry == inner.end()) entry = inner.begin() + static_cast<std::ptrdiff_t>(c % inner.size());
      }
      order.insert(order.end(), entry, inner.end());
      order.insert(order.end(), inner.begin(), entry);
    }
    rings.rails.push_back(rail);
  }
  return rings;
}

}  // namespace rehearse
