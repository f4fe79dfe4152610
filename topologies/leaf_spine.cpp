#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "topologies/cabling.hpp"

namespace rehearse {
namespace {

// Two tiers. leaf-spine: all NICs of a node connect to one leaf. rail: NIC i of every node of a group
// connects to leaf i of the group, "group0.rail3".
class LeafSpine final : public Cabling {
public:
  LeafSpine(const Fabric& fabric, const Node& node, int nodes)
      : nodes_per_leaf_(fabric.nodes_per_leaf),
        spines_(fabric.spines),
        fold_(fabric.spine_fold),
        nics_(node.nics),
        rails_(fabric.kind == Fabric::Kind::rail ? node.nics : 0),
        routing_(fabric.routing),
        bandwidth_(fabric.link_bandwidth) {
    const int groups = static_cast<int>((std::int64_t{nodes} + nodes_per_leaf_ - 1) / nodes_per_leaf_);
    leaves_ = std::int64_t{groups} * (rails_ > 0 ? rails_ : 1);
  }

  std::int64_t cables() const override { return leaves_ * spines_; }
  double bandwidth(int) const override { return bandwidth_; }
  Ends ends(int cable) const override {
    const int leaf = cable / spines_;
    return {rails_ > 0 ? fmt::format("group{}.rail{}", leaf / rails_, leaf % rails_)
                       : fmt::format("leaf{}", leaf),
            fmt::format("spine{}", cable % spines_)};
  }

  int find(std::string_view a, std::string_view b) const override {
    int at = 0;
    const bool down = is_number(a, "spine", at);
    if (!down && !is_number(b, "spine", at)) return -1;
    const int leaf = leaf_named(down ? b : a);
    return leaf < 0 || at >= spines_ ? -1 : 2 * (leaf * spines_ + at) + down;
  }

  void route(const NodePair& flow, LinkId first, std::vector<LinkId>& links) const override {
    const int from = leaf_of(flow.from_node, flow.from_nic), to = leaf_of(flow.to_node, flow.to_nic);
    if (from == to) return;
    const int over = spine(flow);
    links.push_back(first + 2 * (from * spines_ + over));
    links.push_back(first + 2 * (to * spines_ + over) + 1);
  }

  // Blocks are whole leaves. Their routes move along if a destination keeps its spine, which follows from its
  // number modulo the number of spines (or modulo the fold).
  int nodes_per_equal_block() const override {
    if (routing_ != Fabric::Routing::d_mod_k) return 0;
    const std::int64_t modulus = fold_ > 0 ? fold_ : spines_, ports_per_node = rails_ > 0 ? 1 : nics_;
    const std::int64_t nodes =
        std::lcm(std::int64_t{nodes_per_leaf_}, modulus / std::gcd(modulus, ports_per_node));
    return nodes <= std::numeric_limits<int>::max() ? static_cast<int>(nodes) : 0;
  }
  int node_beside(int cable) const override {
    const int leaf = cable / spines_;
    return (rails_ > 0 ? leaf / rails_ : leaf) * nodes_per_leaf_;
  }

private:
  int leaf_of(int node, int nic) const {
    const int group = node / nodes_per_leaf_;
    return rails_ > 0 ? group * rails_ + nic : group;
  }

  int leaf_named(std::string_view text) const {
    int group = 0, number = 0;
    if (rails_ == 0) return is_number(text, "leaf", number) && number < leaves_ ? number : -1;
    if (!take_number(text, "group", group) || !is_number(text, ".rail", number)) return -1;
    return number < rails_ && group < leaves_ / rails_ ? group * rails_ + number : -1;
  }

  int spine(const NodePair& flow) const {
    std::uint64_t choice = hash_of(flow);
    if (routing_ == Fabric::Routing::d_mod_k) choice = port_of(flow);
    if (fold_ > 0) choice %= static_cast<std::uint64_t>(fold_);
    return static_cast<int>(choice % static_cast<std::uint64_t>(spines_));
  }

  // Destinations of one leaf are numbered consecutively: all NICs of its nodes, or one NIC of each node.
  std::uint64_t port_of(const NodePair& flow) const {
    const auto node = static_cast<std::uint64_t>(flow.to_node), nic = static_cast<std::uint64_t>(flow.to_nic);
    return rails_ > 0 ? node + nic : node * static_cast<std::uint64_t>(nics_) + nic;
  }

  int nodes_per_leaf_, spines_;
  std::int64_t fold_;
  int nics_, rails_;
  Fabric::Routing routing_;
  double bandwidth_;
  std::int64_t leaves_ = 0;
};

}  // namespace

std::unique_ptr<Cabling> make_leaf_spine(const Fabric& fabric, const Node& node, int nodes) {
  return std::make_unique<LeafSpine>(fabric, node, nodes);
}

}  // namespace rehearse
