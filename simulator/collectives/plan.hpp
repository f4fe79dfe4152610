// Describes how an all-reduce runs over the members of a group: who sends to whom, in which order, with which
// share.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "simulator/schedule/op.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// A phase of a collective schedule. Members are numbered from 0 in the group's order. A phase works on the
// block of the buffer that the phases before it have left to each member.
struct Stage {
  enum class Kind {
    all_reduce,      // rings, one per group: 2 (g-1) steps; all places of a ring hold the same block
    reduce_scatter,  // rings: g-1 steps; place i keeps part i of g
    all_gather,      // rings: undoes the last reduce_scatter and has the same groups
    give,            // pairs: the first member sends its block to the second, which adds it
    take_back,       // pairs: the second member sends back the result
    swap,            // pairs: both members send their block to each other, and both add what they receive
    switched,  // switches sum over each group and return the sum: NVSwitches (NVLS; half of the block for
               // each tree, if there are trees) or the network's switches (CollNet)
    trees,     // each tree carries its part of the block up to the root and back, cut into pieces
  } kind = Kind::all_reduce;
  std::vector<std::vector<int>> groups;   // all of the same size, at least 2; each member is in at most one
  std::vector<std::vector<int>> parents;  // trees, switched: [tree][member]; -1: the root, or not in the tree
  // CollNetDirect: the members of each node. Each member sums one part of the block for its node from what
  // the others send, has the network's switches sum it over the member's group, and sends the result to the
  // others.
  std::vector<std::vector<int>> exchanges;
  // Hops of rings on a mesh that go through another member: {from, through, to}.
  std::vector<std::array<int, 3>> relays;
  int rail = -1;  // NIC number, see Cluster::route()
};

// A share of the buffer that passes through its own sequence of phases, in parallel with the other lanes.
struct Lane {
  double share = 1;
  std::vector<Stage> stages;
};

struct CollectivePlan {
  Algorithm algorithm = Algorithm::ring;
  int members = 1;
  std::vector<Lane> lanes;
};

// Returns the collective schedule of an all-reduce over `members` (algorithms/); `channels` as in
// ring_orders(). Throws InputError if misfit() reports that the algorithm does not fit.
CollectivePlan collective_plan(Algorithm algorithm, const Cluster& cluster,
                               const std::vector<Endpoint>& members, int channels);

// Returns why these members cannot use the algorithm, and what it needs; empty if they can.
std::string misfit(Algorithm algorithm, const Cluster& cluster, const std::vector<Endpoint>& members);

// Who sends to whom in a phase. All edges of a phase carry the same number of bytes.
struct PlanEdge {
  int from = 0, to = 0;
  int tree = 0;
  int through = -1;  // member that relays; -1: none
};
std::vector<PlanEdge> stage_edges(const Stage& stage);
// Appends the links from one member to another, by way of member `edge.through` if that is not -1.
void route_edge(const Cluster& cluster, const std::vector<Endpoint>& members, const PlanEdge& edge, int rail,
                std::vector<LinkId>& links);
// Returns the same all-reduce as messages between members, for executors without switches that sum:
// `switched` phases become rings, or trees that continue as chains inside the nodes.
CollectivePlan in_messages(CollectivePlan plan);
// Returns the number of sequential steps; 0 for trees, whose pieces follow the path of each tree.
int stage_steps(const Stage& stage);
// Shares of the entire buffer, for each phase of a lane: of the block that the phase works on, and of the
// data on each edge.
struct StageShare {
  double block = 0, edge = 0;
};
std::vector<StageShare> stage_shares(const Lane& lane);

// Returns the parents of n nodes in each of the two trees; -1 for the root.
std::vector<std::vector<int>> double_tree(int n);

}  // namespace rehearse
