// Lists the transfers between ranks that a schedule's ops represent, rank by rank.
#pragma once

#include <string>
#include <vector>

#include "simulator/schedule/rank_symmetry.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Returns the number of ranks that do something, which are the first ones: the storages behind them are only
// read from and written to.
int process_ranks(const Schedule& schedule);

// All messages between the same two ends with the same tag, or all collectives of one group on streams of the
// same name (a communicator; collectives of each course have a separate one). Its individual ops match in the
// order in which they are called.
struct Transfer {
  int pattern = 0;  // transfers of one pattern come from the same places of the same programs
  bool collective = false;
  std::vector<int> ranks;  // {sender, receiver}, or the members in mesh order; numbered over all roles
  bool spread = false;     // under a symmetry: it has members among all copies, so it is its own copy
};

// A way in which a program's ops name their peers: a direction, a peer and a tag, or a group.
struct Slot {
  enum class Kind { send, receive, receive_any, reply, collective } kind = Kind::send;
  Peer peer;
  int tag = 0;
  Access access;  // of all its messages
  Collective collective;
  Course course() const { return course_of(collective.kind); }
  int stream = 0;  // of the first op that uses it
  bool may_overlap =
      false;  // two of its transfers can run at the same time (several streams, twice in an op)
};

class Communication {
public:
  // With a symmetry, contains only the transfers of the ranks that represent others, each of which stands for
  // its copies. Arguments `rank` below can be any rank; results are those of the rank that represents it.
  explicit Communication(const Schedule& schedule, RankSymmetry symmetry = {});

  std::vector<Transfer> transfers;
  int patterns = 0;

  const std::vector<Slot>& slots_of(int program) const { return slots_[program]; }
  // Returns the slot of message number `part` of an exchange, or of a collective (part 0).
  int slot(int program, int op, int part) const {
    return slot_of_part_[program][first_part_[program][op] + part];
  }
  // Returns the transfers that a slot refers to at one rank (numbered over all roles).
  const std::vector<int>& at(int rank, int slot) const { return at_[symmetry_.number_of(rank)][slot]; }
  int program_of_rank(int rank) const { return program_[symmetry_.number_of(rank)]; }
  int role_of_rank(int rank) const { return role_[symmetry_.number_of(rank)]; }
  const RankSymmetry& symmetry() const { return symmetry_; }

private:
  RankSymmetry symmetry_;
  std::vector<std::vector<Slot>> slots_;
  // By program: the slots of all parts of its ops, and the index of each op's first part.
  std::vector<std::vector<int>> slot_of_part_, first_part_;
  std::vector<std::vector<std::vector<int>>> at_;
  std::vector<int> program_, role_;
};

}  // namespace rehearse
