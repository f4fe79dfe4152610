// What a plan puts on a cluster's links, and how long it takes there alone.
#pragma once

#include <vector>

#include "simulator/collectives/plan.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {

struct StageOnNetwork {
  Stage::Kind kind = Stage::Kind::all_reduce;
  int steps = 0;  // one after the other; trees: edges of the longest way up and down
  StageShare share;
  // Of one group (trees: of all members), `channels` counting the plan's lanes.
  TransferShape shape;
  double inverse_bandwidth = 0;  // s for a byte on each edge, this stage of all lanes being under way
  int edges = 0;
  std::vector<LinkId> links;  // of all edges, ascending, each as often as it is crossed
};
struct PlanOnNetwork {
  Algorithm algorithm = Algorithm::ring;
  std::vector<std::vector<StageOnNetwork>> lanes;
};
PlanOnNetwork on_network(const CollectivePlan& plan, const Cluster& cluster,
                         const std::vector<Endpoint>& members);

// Sets what the edges tell of the NVLinks in their way: nvlink_only, relayed, nvlink_bandwidth. `nodes` and
// `channels` must be right already.
void take_interconnect(TransferShape& shape, const Cluster& cluster, const std::vector<Endpoint>& members,
                       const std::vector<PlanEdge>& edges);

// What a stage costs in an all-reduce of `bytes`; its edges carry bytes_per_edge each. Rings cost what
// ring_cost() says, trees tree_cost(), NVLS nvls_cost(), CollNet collnet_cost(); halving-doubling and torus
// send plain messages, step by step. Messages are at most `chunk_bytes` long (0: not cut).
TransferCost stage_cost(Algorithm algorithm, const StageOnNetwork& stage, double bytes,
                        const Protocol& protocol, double chunk_bytes);

// Seconds of an all-reduce of `bytes` alone on the network, its lanes side by side, their stages in step.
double time_alone_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol, double chunk_bytes);

// The same as NCCL predicts it when it chooses: without ramps (TransferCost::ramp_s).
double time_as_chosen_s(const PlanOnNetwork& plan, double bytes, const Protocol& protocol,
                        double chunk_bytes);

// What `auto` chooses from: what fits, and of that, where GPUs speak NCCL, only its rings and trees, NVLS
// with as many GPUs as make NCCL prefer it, and CollNet.
std::vector<Algorithm> candidates(const Cluster& cluster, const std::vector<Endpoint>& members,
                                  const Protocol& protocol);

}  // namespace rehearse
