// The uncertainty of bandwidths and latencies, by protocol and kind of node.
#pragma once

#include "simulator/costs/transfer.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Standard deviations of the logarithms of bandwidths inside nodes and between nodes, and of startup and
// latency. `source` says from what they follow.
struct LinkUncertainty {
  double inside_node = 0, between_nodes = 0, latency = 0;
  Basis basis = Basis::published;
  const char* source = "";
};

// Of the ideal protocol all are 0: it is exact by definition, and NCCL's between processors is the same. Of a
// measured link profile they are those of its quartiles, in the mean over its ranges.
LinkUncertainty link_uncertainty(const Protocol& protocol, const Node& node);

}  // namespace rehearse
