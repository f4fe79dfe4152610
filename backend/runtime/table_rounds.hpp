// A message table as rounds of messages that do not depend on each other: for executors whose order is fixed
// before they begin.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/collectives/message_table.hpp"

namespace rehearse {

// A message of this member's, seen from its end.
struct TablePiece {
  bool send = false;
  bool reduce = false;               // a receive: added to what the buffer has
  int peer = 0;                      // member
  std::size_t begin = 0, bytes = 0;  // in the buffer
  std::size_t scratch = 0;  // a receive that is added: where it arrives, in bytes of the round's scratch
};
struct TableRound {
  std::vector<TablePiece> pieces;
  std::size_t scratch_bytes = 0;
};

// Every message is in the round behind the last of those that it needs, so that all members that carry out
// their rounds in order meet. `bytes`: of the buffer; what the table has beyond them is left out.
std::vector<TableRound> table_rounds(const MessageTable& table, int member, std::size_t bytes);

}  // namespace rehearse
