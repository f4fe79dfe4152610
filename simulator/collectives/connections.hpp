// Describes who sends to whom in a collective, and what share of the bytes each connection carries.
#pragma once

#include <vector>

#include "simulator/collectives/plan.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// A directed connection between two members. It carries its messages one after the other.
struct Connection {
  int from = 0, to = 0;
  int rail = -1;           // NIC number, see Cluster::route()
  int lane = 0, tree = 0;  // indices of the Lane, and of a tree of its phases
  int through = -1;        // member that relays; -1: none
};

// Returns the connections of every collective with this course, lane by lane, in the order of their first
// messages. For switched algorithms (NVLS, CollNet) they are those of in_messages().
//   ring: the edges of all phases. All other courses except `pairs` need the collective schedule of a ring;
//     throws RunError for that of any other algorithm.
//   from_root: the lane's ring without the edge into the root, which is member 0. to_root: the ring without
//     the edge out of the root. Both start at the chain's first member.
//   pairs: pairs_from() of each member.
std::vector<Connection> connections_of(Course course, const CollectivePlan& plan);
// Returns the connections from a member to all others, starting with its successor.
std::vector<Connection> pairs_from(int member, int members);

// Returns the bytes that each of connections_of() carries, as a multiple of Collective::bytes.
std::vector<double> connection_shares(CollectiveKind kind, const CollectivePlan& plan);

// Returns the members in the order of the lane's ring. Throws RunError if the lane's algorithm is not ring.
const std::vector<int>& ring_of(const Lane& lane);
// Returns the members of a lane's chain, first to last: starting at the root, or ending at it.
std::vector<int> chain_of(const Lane& lane, Course course);
// Returns all members of a tree except the root, those farthest from the root first.
std::vector<int> farthest_first(const std::vector<int>& parents);

}  // namespace rehearse
