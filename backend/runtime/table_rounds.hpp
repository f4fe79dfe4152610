// Splits a message table into rounds of messages that do not depend on each other, for executors whose order
// is fixed before they begin.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/collectives/message_table.hpp"

namespace rehearse {

// A message of one member, seen from its end.
struct TablePiece {
  bool send = false;
  bool reduce = false;               // a receive: the data is added to the buffer
  int peer = 0;                      // member
  std::size_t begin = 0, bytes = 0;  // in the buffer
  std::size_t scratch = 0;           // reduce: where it arrives, in bytes of the round's scratch memory
};
struct TableRound {
  std::vector<TablePiece> pieces;
  std::size_t scratch_bytes = 0;
};

// Returns the rounds of a member. Every message is in the round after the last of those that it needs, so
// that members that carry out their rounds in order match. A round's messages are all sent before any that it
// receives is added. `bytes` is the size of the buffer; the part of the
// table beyond it is left out.
std::vector<TableRound> table_rounds(const MessageTable& table, int member, std::size_t bytes);

}  // namespace rehearse
