// Defines an algorithm of all-reduces as an entry of a table: whom it fits, its phases, and what they cost.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/collectives/plan.hpp"

namespace rehearse {

// The members of an all-reduce; `channels` as in ring_orders().
struct AlgorithmGroup {
  const Cluster& cluster;
  const std::vector<Endpoint>& members;
  int channels = 0;
};

struct AlgorithmEntry {
  // Returns the lanes of at least two members that the algorithm fits.
  std::vector<Lane> (*lanes)(const AlgorithmGroup& group);
  // Returns why these members cannot use the algorithm, and what it needs; empty if they can. Null: all can.
  // `nodes` are the members of each node.
  std::string (*misfit)(const AlgorithmGroup& group, const std::vector<std::vector<int>>& nodes) = nullptr;
  bool same_on_every_node = false;  // fits only the same number of members on every node
  // Returns the cost of one phase (stage_cost()).
  TransferCost (*cost)(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                       double chunk_bytes);
  // Returns whether `auto` considers the algorithm for GPUs under the protocol `nccl`. Null: never, because
  // NCCL does not have it; everything else considers it if members add.
  bool (*in_nccl)(const AlgorithmGroup& group) = nullptr;
  // Replaces a `switched` phase by messages between members; null: there are none.
  void (*into_messages)(Stage& stage, int members) = nullptr;
};
const AlgorithmEntry& entry_of(Algorithm algorithm);

// What several algorithms share.

bool always(const AlgorithmGroup& group);

// Converts endpoints, in the orders that the topology returns, into member numbers. Members that share an
// endpoint are used in turn.
class MemberNumbers {
public:
  explicit MemberNumbers(const std::vector<Endpoint>& members);
  std::vector<int> of(const std::vector<Endpoint>& order) const;

private:
  std::vector<std::pair<Endpoint, int>> at_;  // endpoints and the members there, ascending
};

// Returns one lane for each channel, with one ring.
std::vector<Lane> ring_lanes(const AlgorithmGroup& group);
// Changes the kind of a ring's phase and removes its groups; returns the order of the ring.
std::vector<int> turn_into(Stage& stage, Stage::Kind kind);
// Splits the ring of a channel by node. The ring enters each node at the device of the channel's NIC.
std::vector<std::vector<int>> split_by_node(const AlgorithmGroup& group, const std::vector<int>& order);
// Returns the members of each node, with nodes in the order of their first member.
std::vector<std::vector<int>> members_by_node(const Cluster& cluster, const std::vector<Endpoint>& members);
// Returns the parents in two trees over the nodes' heads; `before` has the parents of all other members.
std::vector<std::vector<int>> trees_over(const std::vector<int>& heads, const std::vector<int>& before);

// Returns phases of pairs, whose distance in the list of members is 1, 2, 4 and so on. The number of members
// is a power of two.
std::vector<Stage> pairs_by_distance(const std::vector<int>& members, Stage::Kind kind);
// Returns one lane for any number n = p + r of members, p a power of two. The first 2 r members form pairs,
// in which the first member gives its buffer to the second and takes the sum back; the phases that `phases`
// returns sum over the other p members. Thakur, Rabenseifner, Gropp, "Optimization of Collective
// Communication Operations in MPICH" (2005).
std::vector<Lane> lane_of_power_of_two(int n, std::vector<Stage> (*phases)(const std::vector<int>& members));

// The costs of phases that are rings as NCCL runs them, trees, and messages step by step.
TransferCost ring_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                             double chunk_bytes);
TransferCost tree_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                             double chunk_bytes);
TransferCost message_stage_cost(const StageOnNetwork& stage, double bytes, const Protocol& protocol,
                                double chunk_bytes);

}  // namespace rehearse
