#include "simulator/commands/predicting/link_constants.hpp"

#include <fmt/format.h>

#include <utility>

#include "simulator/costs/link_uncertainty.hpp"
#include "topologies/faster.hpp"

namespace rehearse {

std::vector<LinkConstant> link_constants(const Cluster& cluster, const Protocol& protocol) {
  const LinkUncertainty uncertainty = link_uncertainty(protocol, cluster.node());
  std::vector<LinkConstant> found;
  const auto add = [&](const char* what, double deviation, bool inside, bool between, auto change) {
    if (deviation > 0)
      found.push_back({fmt::format("{} {}", cluster.name, what), uncertainty.basis, deviation, inside,
                       between, std::move(change)});
  };
  const auto add_bandwidth = [&](const char* what, double deviation, bool inside, double Faster::*links) {
    add(what, deviation, inside, !inside,
        [links](std::shared_ptr<const Cluster>& changed, EngineOptions&, double better) {
          Faster factors;
          factors.*links = better;
          changed = faster(changed, factors);
        });
  };
  add_bandwidth("bandwidth inside nodes", uncertainty.inside_node, true, &Faster::intra_node_links);
  add_bandwidth("bandwidth between nodes", uncertainty.between_nodes, false, &Faster::network_links);
  add("startup and latency", uncertainty.latency, true, true,
      [](std::shared_ptr<const Cluster>&, EngineOptions& options, double better) {
        options.latency_factor /= better;
      });
  return found;
}

}  // namespace rehearse
