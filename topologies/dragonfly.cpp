#include <fmt/format.h>

#include "topologies/cabling.hpp"

namespace rehearse {
namespace {

// Connects every two of n things once; pairs with the same distance around a circle are numbered
// consecutively.
struct Pairs {
  int n = 1;
  std::int64_t count() const { return std::int64_t{n} * (n - 1) / 2; }
  int first(int pair) const { return pair % n; }
  int second(int pair) const { return (pair % n + pair / n + 1) % n; }
  // Direction from a to b.
  int direction(int a, int b) const {
    const int ahead = (b - a + n) % n, behind = n - ahead;
    const bool back = ahead > behind || (ahead == behind && a > b);
    return 2 * (back ? (behind - 1) * n + b : (ahead - 1) * n + a) + back;
  }
};

// J. Kim, W. Dally, S. Scott, D. Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008:
// every two routers of a group are connected, and every two groups, by their routers in turn. Minimal
// routing: to the router with the cable to the other group, over that cable, and on to the node's router.
class Dragonfly final : public Cabling {
public:
  explicit Dragonfly(const Fabric& fabric)
      : local_{fabric.routers_per_group},
        groups_{fabric.groups},
        nodes_per_router_(fabric.nodes_per_router),
        groups_a_router_((fabric.groups - 2 + fabric.routers_per_group) / fabric.routers_per_group),
        bandwidth_(fabric.link_bandwidth),
        global_bandwidth_(fabric.global_bandwidth) {}

  // First come the cables inside the groups, then those between groups.
  std::int64_t cables() const override { return inside() + groups_.count(); }
  double bandwidth(int cable) const override { return cable < inside() ? bandwidth_ : global_bandwidth_; }

  Ends ends(int cable) const override {
    if (cable < inside()) {
      const int a_group = static_cast<int>(local_.count()), base = cable / a_group * local_.n;
      return named(base + local_.first(cable % a_group), base + local_.second(cable % a_group));
    }
    const int pair = cable - static_cast<int>(inside());
    const int a = groups_.first(pair), b = groups_.second(pair);
    return named(gate(a, b), gate(b, a));
  }

  int find(std::string_view a, std::string_view b) const override {
    int from = 0, to = 0;
    if (!is_number(a, "router", from) || !is_number(b, "router", to) || from == to) return -1;
    const int from_group = from / local_.n, to_group = to / local_.n;
    if (from_group >= groups_.n || to_group >= groups_.n) return -1;
    if (from_group == to_group) return inside_step(from, to);
    return gate(from_group, to_group) == from && gate(to_group, from_group) == to
               ? between_step(from_group, to_group)
               : -1;
  }

  void route(const NodePair& flow, LinkId first, std::vector<LinkId>& links) const override {
    int from = flow.from_node / nodes_per_router_;
    const int to = flow.to_node / nodes_per_router_;
    const int from_group = from / local_.n, to_group = to / local_.n;
    if (from_group != to_group) {
      const int exit = gate(from_group, to_group);
      if (from != exit) links.push_back(first + inside_step(from, exit));
      links.push_back(first + between_step(from_group, to_group));
      from = gate(to_group, from_group);
    }
    if (from != to) links.push_back(first + inside_step(from, to));
  }

private:
  static Ends named(int a, int b) { return {fmt::format("router{}", a), fmt::format("router{}", b)}; }
  std::int64_t inside() const { return groups_.n * local_.count(); }
  // Returns the router of a group that has the cable to another group.
  int gate(int group, int other) const {
    return group * local_.n + ((other - group + groups_.n) % groups_.n - 1) / groups_a_router_;
  }
  int inside_step(int from, int to) const {
    const int group = from / local_.n;
    return 2 * group * static_cast<int>(local_.count()) + local_.direction(from % local_.n, to % local_.n);
  }
  int between_step(int from_group, int to_group) const {
    return 2 * static_cast<int>(inside()) + groups_.direction(from_group, to_group);
  }

  Pairs local_, groups_;
  int nodes_per_router_, groups_a_router_;
  double bandwidth_, global_bandwidth_;
};

}  // namespace

std::unique_ptr<Cabling> make_dragonfly(const Fabric& fabric) {
  return std::make_unique<Dragonfly>(fabric);
}

}  // namespace rehearse
