#include "backend/runtime/table_rounds.hpp"

#include <algorithm>

#include "backend/runtime/wiring.hpp"

namespace rehearse {

std::vector<TableRound> table_rounds(const MessageTable& table, int member, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;  // of the data that arrives in scratch memory
  std::vector<int> round_of(table.messages.size(), 0), next_on(table.connections.size(), 0);
  std::vector<TableRound> rounds;
  const auto earliest = [&](std::size_t m) {
    const MessageTable::Message& message = table.messages[m];
    int round = next_on[static_cast<std::size_t>(message.connection)];
    for (std::int64_t i = table.first_needed[m]; i < table.first_needed[m + 1]; ++i)
      round =
          std::max(round, round_of[static_cast<std::size_t>(table.needed[static_cast<std::size_t>(i)])] + 1);
    if (message.behind >= 0) round = std::max(round, round_of[static_cast<std::size_t>(message.behind)] + 1);
    return round;
  };
  for (std::size_t m = 0; m < table.messages.size(); ++m) {
    const MessageTable::Message& message = table.messages[m];
    const auto connection = static_cast<std::size_t>(message.connection);
    int round = earliest(m);
    // Messages that swap are in one round, because a round's messages leave before it adds what it receives.
    if (const auto other = static_cast<std::size_t>(message.after_sent); message.after_sent >= 0)
      round = other < m ? round_of[other] : std::max(round, earliest(other));
    round_of[m] = round;
    next_on[connection] = round + 1;

    const Connection& ends = table.connections[connection];
    if (ends.from != member && ends.to != member) continue;
    TablePiece piece;
    piece.send = ends.from == member;
    piece.peer = piece.send ? ends.to : ends.from;
    piece.begin = std::min(bytes, static_cast<std::size_t>(message.begin) * kElementBytes);
    piece.bytes = std::min(bytes, static_cast<std::size_t>(message.end) * kElementBytes) - piece.begin;
    if (piece.bytes == 0) continue;
    if (rounds.size() <= static_cast<std::size_t>(round)) rounds.resize(static_cast<std::size_t>(round) + 1);
    TableRound& its = rounds[static_cast<std::size_t>(round)];
    if (!piece.send && message.reduce) {
      piece.reduce = true;
      piece.scratch = its.scratch_bytes;
      its.scratch_bytes += (piece.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    its.pieces.push_back(piece);
  }
  return rounds;
}

}  // namespace rehearse
