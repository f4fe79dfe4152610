#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

using Order = std::vector<Endpoint>;

// Sorts the members of one node by one of the node's rings; processors come last.
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

// Takes one NVLink for every edge of the closed ring, if all of them are free.
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

// A ring inside a node, and its hops that go through another member.
struct NodeRing {
  Order order;
  std::vector<std::array<Endpoint, 3>> relays;
};

// Finds the largest set of rings that can run at the same time over the NVLinks of a mesh's members, with one
// ring per NVLink and direction, as NCCL's search does (src/graph/search.cc): depth first over the orders
// that begin with the first member, those with the fewest hops without NVLink first; each order is followed
// only by itself and later ones. With `relays`, members that no NVLink connects communicate through the
// member between them that has the most links to both; the first one wins a tie.
class RingSearch {
public:
  RingSearch(const Cluster& cluster, const Order& members, const FreeLinks& links, bool relays)
      : members_(members), n_(members.size()), relays_(relays), free_(n_ * n_, 0) {
    most_rings_ = std::numeric_limits<int>::max();
    for (std::size_t a = 0; a < n_; ++a) {
      int out = 0;
      for (std::size_t b = 0; b < n_; ++b) {
        const auto it = links.find({cluster.local_of(members[a]), cluster.local_of(members[b])});
        if (it != links.end()) out += free_[a * n_ + b] = it->second;
      }
      most_rings_ = std::min(most_rings_, out);
    }
    all_ = free_;
    std::vector<std::size_t> order(n_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    do orders_.push_back(order);
    while (std::next_permutation(order.begin() + 1, order.end()));
    std::stable_sort(orders_.begin(), orders_.end(),
                     [&](const auto& one, const auto& other) { return gaps(one) < gaps(other); });
  }

  std::vector<NodeRing> most() {
    search(0);
    return best_;
  }

private:
  struct Taken {
    std::vector<std::size_t> links;
    NodeRing ring;
  };

  // Number of hops without an NVLink.
  int gaps(const std::vector<std::size_t>& order) const {
    int count = 0;
    for (std::size_t i = 0; i < n_; ++i) count += all_[order[i] * n_ + order[(i + 1) % n_]] == 0;
    return count;
  }

  bool take_link(std::size_t from, std::size_t to, Taken& taken) {
    if (free_[from * n_ + to] == 0) return false;
    --free_[from * n_ + to];
    taken.links.push_back(from * n_ + to);
    return true;
  }

  bool take_hop(std::size_t from, std::size_t to, Taken& taken) {
    if (take_link(from, to, taken)) return true;
    if (!relays_ || all_[from * n_ + to] > 0) return false;
    std::size_t through = n_;
    int most = 0;
    for (std::size_t c = 0; c < n_; ++c)
      if (const int links = std::min(free_[from * n_ + c], free_[c * n_ + to]); links > most) {
        most = links;
        through = c;
      }
    if (most == 0) return false;
    taken.ring.relays.push_back({members_[from], members_[through], members_[to]});
    return take_link(from, through, taken) && take_link(through, to, taken);
  }

  bool take_ring(const std::vector<std::size_t>& order, Taken& taken) {
    for (std::size_t i = 0; i < n_; ++i)
      if (!take_hop(order[i], order[(i + 1) % n_], taken)) return false;
    for (const std::size_t m : order) taken.ring.order.push_back(members_[m]);
    return true;
  }

  void search(std::size_t first) {
    if (chosen_.size() > best_.size()) best_ = chosen_;
    for (std::size_t o = first; o < orders_.size(); ++o) {
      if (static_cast<int>(best_.size()) >= most_rings_ || ++steps_ > kMostSteps) return;
      Taken taken;
      if (take_ring(orders_[o], taken)) {
        chosen_.push_back(taken.ring);
        search(o);
        chosen_.pop_back();
      }
      for (const std::size_t link : taken.links) ++free_[link];
    }
  }

  static constexpr int kMostSteps = 100'000;  // several tens of milliseconds
  const Order& members_;
  std::size_t n_;
  bool relays_;
  std::vector<int> free_, all_;  // NVLinks from one member to another
  int most_rings_ = 0;           // each ring takes a link out of every member
  std::vector<std::vector<std::size_t>> orders_;
  std::vector<NodeRing> chosen_, best_;
  int steps_ = 0;
};

// Largest number of members for which rings are searched.
constexpr std::size_t kMostSearched = 7;

std::vector<NodeRing> searched_rings(const Cluster& cluster, const Order& members, const FreeLinks& links,
                                     bool alone) {
  for (const Endpoint e : members)
    if (e >= cluster.devices()) return {};
  if (members.size() < 2 || members.size() > kMostSearched) return {};
  std::vector<NodeRing> rings = RingSearch(cluster, members, links, false).most();
  if (rings.empty() && alone) rings = RingSearch(cluster, members, links, true).most();
  return rings;
}

std::vector<NodeRing> without_relays(std::vector<Order> orders) {
  std::vector<NodeRing> rings;
  for (Order& order : orders) rings.push_back({std::move(order), {}});
  return rings;
}

// Returns the rings inside a node. On a mesh: as many of the node's rings, in both directions, as there are
// NVLinks for, or, if that gives more, the rings found for this subset of the devices. `alone`: no other node
// takes part.
std::vector<NodeRing> node_rings(const Cluster& cluster, const Order& members, bool alone) {
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
    return without_relays({all.begin(), all.begin() + (mesh ? 1 : static_cast<std::ptrdiff_t>(all.size()))});
  FreeLinks free;
  for (const auto& m : node.mesh) free[{m.a, m.b}] = free[{m.b, m.a}] = m.count;
  const FreeLinks whole = free;
  std::vector<Order> chosen;
  for (const Order& ring : all)
    if (take_links(cluster, ring, free)) chosen.push_back(ring);
  std::vector<NodeRing> searched = searched_rings(cluster, members, whole, alone);
  if (searched.size() > chosen.size()) return searched;
  if (chosen.empty()) chosen.push_back(all.front());
  return without_relays(std::move(chosen));
}

int nic_of_member(const Cluster& cluster, Endpoint e) {
  return e < cluster.devices() ? cluster.nic_of(cluster.local_of(e)) : 0;
}

struct NodeMembers {
  std::vector<NodeRing> rings;
  std::vector<int> nics;  // of the members, without duplicates, in the order of the first ring
};

}  // namespace

Rings ring_orders(const Cluster& cluster, const std::vector<Endpoint>& members, int channels) {
  // Thousands of nodes with one member each, in the order of their numbers: a single ring, without rails.
  const auto not_after = [&](Endpoint a, Endpoint b) { return cluster.node_of(a) >= cluster.node_of(b); };
  if (members.size() > 1 && std::adjacent_find(members.begin(), members.end(), not_after) == members.end())
    return {{members}, {-1}, std::vector<std::vector<std::array<Endpoint, 3>>>(1)};
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
    node.rings = node_rings(cluster, group, grouped.size() == 1);
    for (const Endpoint e : node.rings.front().order) {
      const int nic = nic_of_member(cluster, e);
      if (std::find(node.nics.begin(), node.nics.end(), nic) == node.nics.end()) node.nics.push_back(nic);
    }
    most_members = std::max(most_members, group.size());
    fewest_nics = std::min(fewest_nics, node.nics.size());
    most_orders = std::max(most_orders, node.rings.size());
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
    std::vector<std::array<Endpoint, 3>>& relays = rings.relays.emplace_back();
    order.reserve(members.size());
    for (const NodeMembers& node : nodes) {
      // Channels that share a NIC use different rings inside the node.
      const std::size_t turn = several_nodes ? c + c / fewest_nics : c;
      const NodeRing& ring = node.rings[turn % node.rings.size()];
      const Order& inner = ring.order;
      auto entry = inner.begin();
      if (by_rail) {
        entry = std::find_if(inner.begin(), inner.end(),
                             [&](Endpoint e) { return nic_of_member(cluster, e) == rail; });
        if (entry == inner.end()) entry = inner.begin() + static_cast<std::ptrdiff_t>(c % inner.size());
      }
      order.insert(order.end(), entry, inner.end());
      order.insert(order.end(), inner.begin(), entry);
      relays.insert(relays.end(), ring.relays.begin(), ring.relays.end());
    }
    rings.rails.push_back(rail);
  }
  return rings;
}

}  // namespace rehearse
