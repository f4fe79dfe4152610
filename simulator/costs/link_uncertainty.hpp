// The uncertainty of bandwidths and latencies, by protocol.
#pragma once

#include "simulator/costs/transfer.hpp"

namespace rehearse {

// Standard deviations of the logarithms of bandwidths inside nodes and between nodes, and of startup and
// latency. `source` says from what they follow.
struct LinkUncertainty {
  double inside_node = 0, between_nodes = 0, latency = 0;
  Basis basis = Basis::published;
  const char* source = "";
};

// Of the ideal protocol all are 0: it is exact by definition. Of a measured link profile they are those of
// its quartiles, in the mean over its ranges.
LinkUncertainty link_uncertainty(const Protocol& protocol);

}  // namespace rehearse
