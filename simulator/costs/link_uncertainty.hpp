// Provides the uncertainty of bandwidths and latencies, by protocol and kind of node.
#pragma once

#include "simulator/costs/transfer.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Standard deviations of the logarithms of the bandwidths inside nodes and between nodes, and of startup and
// latency. `source` states what they are derived from.
struct LinkUncertainty {
  double inside_node = 0, between_nodes = 0, latency = 0;
  Basis basis = Basis::published;
  const char* source = "";
};

// Returns 0 throughout for the ideal protocol, which is exact by definition, and for NCCL between processors,
// which is the same. For a measured link profile, the deviations follow from its quartiles, averaged over its
// ranges.
LinkUncertainty link_uncertainty(const Protocol& protocol, const Node& node);

}  // namespace rehearse
