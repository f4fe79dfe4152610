// Lists the messages of a collective: what to send to whom, when, and what the receiver does with it. A
// backend needs nothing else to carry out the collective with real arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/connections.hpp"

namespace rehearse {

struct MessageTable {
  struct Message {
    int connection = 0;               // sends its messages in the order of the table
    int lane = 0, stage = 0;          // indices of the Lane and of its Stage
    bool opens = false;               // needs no message of the same phase
    bool reduce = false;              // the receiver adds the data to its own; otherwise it copies the data
    std::int64_t begin = 0, end = 0;  // range of buffer elements, the same at both ends
    // The message that the receiver must take in before this one, so that it does not wait for both at once.
    // -1: none (along trees and chains, and in pairs, messages are received as they arrive).
    std::int64_t behind = -1;
    // The receiver's own message of the same range, which must have left before this one is added. Two
    // members that add up what they send each other have a pair of such messages, side by side in the table,
    // and each message names the other one. -1: none.
    std::int64_t after_sent = -1;
  };
  int members = 1;
  std::int64_t elements = 0;  // length of the buffer
  std::vector<Connection> connections;
  // Every message comes after all messages that it needs.
  std::vector<Message> messages;
  // Message m can be sent once its sender has received, or sent, needed[first_needed[m]] up to, but not
  // including, needed[first_needed[m + 1]].
  std::vector<std::int64_t> first_needed = {0};
  std::vector<std::int64_t> needed;
};

// Upper limits on the elements of a message; 0: one message carries a step's entire share.
struct Cut {
  std::int64_t most = 0;
  std::int64_t most_pipelined = 0;  // trees and chains, where pieces follow one another
};

// Returns the message table of a collective of `elements` elements (at most 2^40), which are counted like
// Collective::bytes: the elements of the buffer or, for all-to-all, those that each member sends to each
// other member. Empty shares are not sent.
//   all-reduce: lists the messages lane by lane and phase by phase. All other kinds need the collective
//     schedule of a ring, whose lanes split the data.
//   reduce-scatter, all-gather: go around the lanes' rings (Thakur, Rabenseifner, Gropp, "Optimization of
//     Collective Communication Operations in MPICH", 2005); member i ends with part i of the buffer, or
//     starts with it.
//   broadcast, reduce: go along the rings, away from member 0 or towards it.
//   all-to-all: one uncut message for each pair. The buffer has a part for each pair, at a place that both
//     ends know: elements * members * members in total, with the part from i to j at (i * members + j) *
//     elements.
MessageTable message_table(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut);

// Estimates the number of messages of an all-reduce.
double message_count(const CollectivePlan& plan, double elements, Cut cut);

}  // namespace rehearse
