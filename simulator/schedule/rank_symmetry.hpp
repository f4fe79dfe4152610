// Finds a symmetry of a schedule: all ranks can move along one axis of the mesh, and do the same as before.
#pragma once

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Moves that lead from each rank to equal ones, its copies. The ranks consist of periods, and each period of
// blocks that are copies of one another; ranks of the first block of a period represent those of the others.
class RankSymmetry {
public:
  RankSymmetry() = default;  // no moves: every rank represents only itself
  RankSymmetry(int ranks_per_block, int copies)
      : block_(ranks_per_block), period_(ranks_per_block * copies) {}

  int copies() const { return period_ / block_; }
  int representatives(int ranks) const { return ranks / copies(); }
  bool represents(int rank) const { return rank % period_ < block_; }
  // Returns the number, from 0 and in the order of ranks, of the rank that represents this one.
  int number_of(int rank) const { return period_ == block_ ? rank : rank / period_ * block_ + rank % block_; }
  // Returns the rank with this number among those that represent others.
  int rank_of(int number) const {
    return period_ == block_ ? number : number / block_ * period_ + number % block_;
  }

private:
  int block_ = 1, period_ = 1;
};

// Returns the moves of a schedule with the most copies, by multiples of `ranks_per_move` ranks. A transfer
// either stays inside one block, or it is a ring or an all-to-all whose members the moves only rotate. Under
// these moves rank classes, transfer classes and their order are those of the complete schedule. Without
// moves if there are none, as with several roles, with ranks whose amounts differ along every axis, and with
// schedules that cannot be folded.
RankSymmetry find_symmetry(const Schedule& schedule, int ranks_per_move = 1);

}  // namespace rehearse
