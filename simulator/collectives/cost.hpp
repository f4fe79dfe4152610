// Computes the load that a collective puts on a cluster's links, and the time it takes alone on the network.
#pragma once

#include <vector>

#include "simulator/collectives/plan.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {

struct StageOnNetwork {
  Stage::Kind kind = Stage::Kind::all_reduce;
  int steps = 0;  // sequential steps; trees: edges on the longest path up and down
  StageShare share;
  // Shape of one group (trees, switched: of all members); `channels` is the number of lanes.
  TransferShape shape;
  double inverse_bandwidth = 0;  // seconds per byte on each edge while all lanes run this phase
  int edges = 0;
  std::vector<LinkId> links;  // of all edges, ascending; a link appears once for each crossing
};
struct PlanOnNetwork {
  Algorithm algorithm = Algorithm::ring;
  std::vector<std::vector<StageOnNetwork>> lanes;
};
PlanOnNetwork on_network(const CollectivePlan& plan, const Cluster& cluster,
                         const std::vector<Endpoint>& members);

// Sets nvlink_only, relayed, and the bandwidths of NVLink and PCIe, according to the links that the edges
// use. `nodes` and `channels` must already be set.
void take_interconnect(TransferShape& shape, const Cluster& cluster, const std::vector<Endpoint>& members,
                       const std::vector<PlanEdge>& edges);

// Returns the cost of one phase of an all-reduce of `bytes`, as the algorithm counts it (algorithms/); each
// of its edges carries bytes_per_edge. Messages have at most `chunk_bytes` (0: no limit).
TransferCost stage_cost(Algorithm algorithm, const StageOnNetwork& stage, double bytes,
                        const Protocol& protocol, double chunk_bytes);

// Returns the seconds that an all-reduce of `bytes` takes alone on the network. Its lanes run in parallel and
// enter each phase together.
double time_alone_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol, double chunk_bytes);

// Like time_alone_s(), but as NCCL predicts the time when it chooses an algorithm: without ramps
// (TransferCost::ramp_s).
double time_as_chosen_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol,
                        double chunk_bytes);

// Returns the algorithms that `auto` chooses from. All of them fit the members. GPUs under the `nccl`
// protocol use only what NCCL has: ring, tree, NVLS (on one node, if there are enough GPUs for NCCL to prefer
// it) and CollNet. All others use the algorithms without switches.
std::vector<Algorithm> candidates(const Cluster& cluster, const std::vector<Endpoint>& members,
                                  const Protocol& protocol);

}  // namespace rehearse
