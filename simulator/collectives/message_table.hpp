// An all-reduce as messages: what to send to whom, when, and what the receiver does with it. It is all that a
// backend needs in order to carry the plan out with real arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/plan.hpp"

namespace rehearse {

struct MessageTable {
  // From member to member; its messages go one after the other, in the order of the table.
  struct Connection {
    int from = 0, to = 0;
    int rail = -1;
  };
  struct Message {
    int connection = 0;
    int lane = 0, stage = 0;          // of the plan
    bool opens = false;               // needs no message of its stage
    bool reduce = false;              // the receiver adds it to what it has; else it copies
    std::int64_t begin = 0, end = 0;  // elements of the buffer, at both ends
    // The message that the receiver takes in before this one, so that it does not wait for both at once;
    // -1: none (trees receive from both children as it comes).
    std::int64_t behind = -1;
  };
  int members = 1;
  std::int64_t elements = 0;
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
  std::int64_t most_in_trees = 0;  // in which pieces follow one another up and down
};

// The plan for a buffer of so many elements (at most 2^40). Shares of no element are not sent.
MessageTable message_table(const CollectivePlan& plan, std::int64_t elements, Cut cut);

// The table's connections, in its order.
std::vector<MessageTable::Connection> connections_of(const CollectivePlan& plan);

// About how many messages the table would have.
double message_count(const CollectivePlan& plan, double elements, Cut cut);

}  // namespace rehearse
