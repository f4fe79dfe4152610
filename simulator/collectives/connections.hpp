// Who sends to whom in a collective, and what share of its bytes goes over each connection.
#pragma once

#include <vector>

#include "simulator/collectives/plan.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// From member to member. Its messages go one after the other.
struct Connection {
  int from = 0, to = 0;
  int rail = -1;           // as Cluster::route has it
  int lane = 0, tree = 0;  // of the plan
  int through = -1;        // a member that relays; -1: none
};

// The connections of all collectives of a course (of NVLS those of in_messages()), lane by lane, in the order
// of their first messages.
//   ring: of the plan's stages. Every other course needs the plan of a ring (RunError if it is not).
//   from_root, to_root: the lane's ring without its edge into the root, member 0, or without that out of it;
//     they begin where the chain begins.
//   pairs: pairs_from() of each member.
std::vector<Connection> connections_of(Course course, const CollectivePlan& plan);
// From a member to each other one: its successors first.
std::vector<Connection> pairs_from(int member, int members);

// What each of connections_of() carries, as a multiple of Collective::bytes.
std::vector<double> connection_shares(CollectiveKind kind, const CollectivePlan& plan);

// The order of a lane's ring. RunError if the lane is of an algorithm other than ring.
const std::vector<int>& ring_of(const Lane& lane);
// The members of a lane's chain, first to last: from the root or to it.
std::vector<int> chain_of(const Lane& lane, Course course);
// Of a stage's tree, all members but the root, the farthest from it first.
std::vector<int> farthest_first(const std::vector<int>& parents);

}  // namespace rehearse
