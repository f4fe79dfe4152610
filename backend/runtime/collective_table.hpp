// The message tables of all collectives: of an all-reduce from its plan, of the others along a ring or a
// chain of the members, or from each to each.
#pragma once

#include "simulator/collectives/message_table.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// `elements` of the buffer (all-to-all: that each member sends to each other one), `piece_elements` of the
// pieces in which a chain passes them on. The buffer of an all-to-all has a part for each pair, whose place
// both ends know: elements * members * members in all.
//   reduce-scatter, all-gather: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
//   Operations in MPICH" (2005), around the ring; member i ends with part i, or begins with it. broadcast,
//   reduce: along the chain of the members, from or to the first.
MessageTable collective_table(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut,
                              std::int64_t piece_elements);
// All connections that it may use, in its order.
std::vector<MessageTable::Connection> collective_connections(CollectiveKind kind, const CollectivePlan& plan);

}  // namespace rehearse
