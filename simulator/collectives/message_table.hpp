// A collective as messages: what to send to whom, when, and what the receiver does with it. It is all that a
// backend needs in order to carry the collective out with real arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/connections.hpp"

namespace rehearse {

struct MessageTable {
  struct Message {
    int connection = 0;               // which sends its messages in the order of the table
    int lane = 0, stage = 0;          // of the plan
    bool opens = false;               // needs no message of its stage
    bool reduce = false;              // the receiver adds it to what it has; else it copies
    std::int64_t begin = 0, end = 0;  // elements of the buffer, at both ends
    // The message that the receiver takes in before this one, so that it does not wait for both at once;
    // -1: none (along trees and chains, and in pairs, messages are received as they come).
    std::int64_t behind = -1;
  };
  int members = 1;
  std::int64_t elements = 0;  // of the buffer
  std::vector<Connection> connections;
  // Every message stands behind those that it needs.
  std::vector<Message> messages;
  // Those that must have arrived at its sender before message m goes: needed[first_needed[m]] up to
  // needed[first_needed[m + 1]].
  std::vector<std::int64_t> first_needed = {0};
  std::vector<std::int64_t> needed;
};

// Messages of at most so many elements; 0: a step's whole share.
struct Cut {
  std::int64_t most = 0;
  std::int64_t most_pipelined = 0;  // trees and chains, in which pieces follow one another
};

// The table of a collective of so many elements (at most 2^40), counted as Collective::bytes is: of the
// buffer, or, of an all-to-all, that each member sends to each other one. Shares of no element are not sent.
//   all-reduce: by the plan, lane by lane, stage by stage. All others need the plan of a ring, whose lanes
//     have their shares of what is sent.
//   reduce-scatter, all-gather: around the lanes' rings (Thakur, Rabenseifner, Gropp, "Optimization of
//     Collective Communication Operations in MPICH", 2005); member i ends with part i of the buffer, or
//     begins with it.
//   broadcast, reduce: along the rings from member 0, or to it.
//   all-to-all: one message for each pair, not cut. The buffer has a part for each pair, whose place both
//     ends know: elements * members * members in all, that from i to j at (i * members + j) * elements.
MessageTable message_table(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut);

// About how many messages an all-reduce has.
double message_count(const CollectivePlan& plan, double elements, Cut cut);

}  // namespace rehearse
