// Finds links that never limit a flow, because each flow that crosses them asks for at least as much of
// another link. Rates are the same without them.
#pragma once

#include <set>

#include "simulator/engine/flow_graph.hpp"

namespace rehearse {

// Partitions the ranks, transfers, flows and links of a run into classes. Ranks and flows that only such
// links tell apart share a class; these links have the same class if the same flows cross them. Links in
// `kept` tell flows apart in any case.
Partition partition_by_limiting_links(const FlowGraph& graph, const Cluster& cluster,
                                      const std::set<LinkId>& kept);

}  // namespace rehearse
