// Determines why an op began when it did, considering only its own rank: what it waited for.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

inline constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

// Returns whether two times are equal except for rounding.
bool same_instant(double a, double b);

class Causes {
public:
  Causes(const Trace& trace, int rank_class);

  // Returns the row that `row` (of the class) waited for: among its dependencies and its stream's
  // predecessor, the one that ended last; kNoRow if there is none. Without `timers`, ops that only sleep are
  // ignored.
  std::size_t blocker_of(std::size_t row, bool timers = true) const;

private:
  const Trace& trace_;
  std::size_t first_ = 0, last_ = 0;
  std::vector<std::tuple<int, int, std::size_t>> by_op_;  // step, op, row
};

}  // namespace rehearse
