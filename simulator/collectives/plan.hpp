// How an all-reduce goes over the members of a group: who talks with whom, in which order, with which share.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "simulator/schedule/op.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Members are numbered from 0 in the group's order. A stage works on the block of the buffer that the stages
// before have left to each of its members.
struct Stage {
  enum class Kind {
    all_reduce,      // in rings, the groups: 2 (g-1) steps; all places of a ring hold the same block
    reduce_scatter,  // in rings: g-1 steps; the place number i keeps part i of g
    all_gather,      // in rings: undoes the last reduce_scatter, whose groups it has
    give,            // pairs: the first sends its block to the second, which adds it
    take_back,       // pairs: the second sends the result back
    switched,        // switches sum over each group and hand the sum out: NVLink's (NVLS; half of the block
                     // for each tree, if any), or the network's (CollNet)
    trees,           // each tree its part of the block: up to the root and back, cut into pieces
  } kind = Kind::all_reduce;
  std::vector<std::vector<int>> groups;   // all of one size, at least 2; each member in one at most
  std::vector<std::vector<int>> parents;  // trees, switched: of every member; -1 at a root, and at others
  // CollNetDirect: the members of each node. Each sums a part of the block for its node, which the others
  // send to it, has the network's switches sum it over its group, and sends the others the sum.
  std::vector<std::vector<int>> exchanges;
  // Hops of rings on a mesh that go through another member: {from, through, to}.
  std::vector<std::array<int, 3>> relays;
  int rail = -1;  // as Cluster::route has it
};

// A share of the buffer that goes its own way, stage by stage, beside the other lanes.
struct Lane {
  double share = 1;
  std::vector<Stage> stages;
};

struct CollectivePlan {
  Algorithm algorithm = Algorithm::ring;
  int members = 1;
  std::vector<Lane> lanes;
};

// The plan of an all-reduce over `members`; `channels` as for ring_orders().
//   ring: a lane for each channel.
//   tree: a lane for each channel, each with two trees over the nodes of which the inner nodes of one are
//     leaves of the other: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast,
//     reduction and scan" (2009). Inside a node they go on as a chain. So NCCL does it.
//   halving-doubling: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
//     MPICH" (2005): the nearest first, with half of the buffer. Of n = p + r members, p a power of two, the
//     first 2 r are pairs, whose first member gives its buffer to the second and takes the sum back.
//   hierarchical: reduce-scatter inside the nodes, all-reduce over the nodes between members of one place,
//     all-gather inside (Horovod's NCCLHierarchicalAllreduce; Cho et al., "BlueConnect", 2019).
//   nvls: the switch of one node; nvls-tree: those of several, with two trees between the nodes, as NCCL's
//     NVLS and NVLSTree. A member's NVLink carries the buffer once each way; between nodes it goes as with
//     `tree`.
//   collnet-chain, collnet-direct: the network's switches sum over the nodes, as with NCCL's CollNetChain and
//     CollNetDirect: a NIC carries its share of the buffer once each way. Inside a node, a chain to the
//     device of the channel's NIC and back, or all members with one another.
//   torus: two lanes a dimension, one each way around, which begin with different dimensions.
// InputError if misfit() says that the algorithm does not fit.
CollectivePlan collective_plan(Algorithm algorithm, const Cluster& cluster,
                               const std::vector<Endpoint>& members, int channels);

// Why the algorithm cannot be used by these members, with what it needs; empty if it can.
std::string misfit(Algorithm algorithm, const Cluster& cluster, const std::vector<Endpoint>& members);

// Who sends to whom in a stage. All of its edges carry the same number of bytes.
struct PlanEdge {
  int from = 0, to = 0;
  int tree = 0;
  int through = -1;  // a member that relays; -1: none
};
std::vector<PlanEdge> stage_edges(const Stage& stage);
// The links from one member to another, through `through` if that is not -1.
void route_edge(const Cluster& cluster, const std::vector<Endpoint>& members, const PlanEdge& edge, int rail,
                std::vector<LinkId>& links);
// The same all-reduce in messages between members, for executors without an NVSwitch: `switched` stages
// become rings, or trees that go on as chains inside the nodes.
CollectivePlan in_messages(CollectivePlan plan);
// Steps that follow one another; trees: 0, since their pieces follow the way of each tree.
int stage_steps(const Stage& stage);
// Of the lane's stages: the share of the whole buffer in the block that the stage works on, and on each edge.
struct StageShare {
  double block = 0, edge = 0;
};
std::vector<StageShare> stage_shares(const Lane& lane);

// The two trees over n nodes: the parent of each, -1 at the root.
std::vector<std::vector<int>> double_tree(int n);

}  // namespace rehearse
