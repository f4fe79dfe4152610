#include <fmt/format.h>

#include "topologies/cabling.hpp"

namespace rehearse {
namespace {

// The k-ary fat tree (M. Al-Fares et al., A Scalable, Commodity Data Center Network Architecture, SIGCOMM
// 2008): pods of k/2 edge switches, each connected to all aggregation switches of its pod; aggregation switch
// j of every pod is connected to the k/2 core switches of its group j. NICs fill the edge switches one after
// the other, node by node.
class FatTree final : public Cabling {
public:
  FatTree(const Fabric& fabric, const Node& node, int nodes)
      : half_(fabric.radix / 2),
        down_(ports_down(fabric, node)),
        up_(fabric.radix - down_),
        nics_(node.nics),
        routing_(fabric.routing),
        bandwidth_(fabric.link_bandwidth) {
    const std::int64_t ports = std::int64_t{nodes} * nics_;
    pods_ = (ports + std::int64_t{half_} * down_ - 1) / (std::int64_t{half_} * down_);
  }

  // First come the cables below the aggregation switches, edge by edge, then those above, switch by switch.
  std::int64_t cables() const override { return 2 * below(); }
  double bandwidth(int) const override { return bandwidth_; }

  Ends ends(int cable) const override {
    if (cable < below()) {
      const int edge = cable / up_, pod = edge / half_;
      return {fmt::format("edge{}", edge), fmt::format("agg{}", pod * up_ + cable % up_)};
    }
    const int above = cable - static_cast<int>(below());
    const int agg = above / half_;
    return {fmt::format("agg{}", agg), fmt::format("core{}", agg % up_ * half_ + above % half_)};
  }

  int find(std::string_view a, std::string_view b) const override {
    int edge = 0, agg = 0, core = 0;
    const bool agg_first = is_number(a, "agg", agg);
    if (!agg_first && !is_number(b, "agg", agg)) return -1;
    const std::string_view other = agg_first ? b : a;
    if (agg >= pods_ * up_) return -1;
    if (is_number(other, "edge", edge))
      return edge < pods_ * half_ && edge / half_ == agg / up_
                 ? 2 * (edge * up_ + agg % up_) + (agg_first ? 1 : 0)
                 : -1;
    if (!is_number(other, "core", core) || core / half_ != agg % up_) return -1;
    return 2 * (static_cast<int>(below()) + agg * half_ + core % half_) + (agg_first ? 0 : 1);
  }

  void route(const NodePair& flow, LinkId first, std::vector<LinkId>& links) const override {
    const std::int64_t to_port = std::int64_t{flow.to_node} * nics_ + flow.to_nic;
    const int from = edge_of(std::int64_t{flow.from_node} * nics_ + flow.from_nic), to = edge_of(to_port);
    if (from == to) return;
    // d-mod-k: the lowest digits of the destination's port select the upward path.
    const std::uint64_t choice =
        routing_ == Fabric::Routing::d_mod_k ? static_cast<std::uint64_t>(to_port) : hash_of(flow);
    const auto up = static_cast<std::uint64_t>(up_), half = static_cast<std::uint64_t>(half_);
    const int over = static_cast<int>(choice % up), core = static_cast<int>(choice / up % half);
    const int from_pod = from / half_, to_pod = to / half_;
    links.push_back(first + 2 * (from * up_ + over));
    if (from_pod != to_pod) {
      const int above = static_cast<int>(below());
      links.push_back(first + 2 * (above + (from_pod * up_ + over) * half_ + core));
      links.push_back(first + 2 * (above + (to_pod * up_ + over) * half_ + core) + 1);
    }
    links.push_back(first + 2 * (to * up_ + over) + 1);
  }

private:
  std::int64_t below() const { return pods_ * half_ * up_; }
  int edge_of(std::int64_t port) const { return static_cast<int>(port / down_); }

  int half_, down_, up_, nics_;
  Fabric::Routing routing_;
  double bandwidth_;
  std::int64_t pods_ = 0;
};

}  // namespace

std::unique_ptr<Cabling> make_fat_tree(const Fabric& fabric, const Node& node, int nodes) {
  return std::make_unique<FatTree>(fabric, node, nodes);
}

}  // namespace rehearse
