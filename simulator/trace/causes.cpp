#include "simulator/trace/causes.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/trace/rows.hpp"

namespace rehearse {

bool same_instant(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

Causes::Causes(const Trace& trace, int rank_class) : trace_(trace) {
  std::tie(first_, last_) = rows_of_class(trace, rank_class);
  by_op_.reserve(last_ - first_);
  for (std::size_t row = first_; row < last_; ++row)
    by_op_.emplace_back(trace.spans.step[row], trace.spans.op[row], row);
  std::sort(by_op_.begin(), by_op_.end());
}

std::size_t Causes::blocker_of(std::size_t row, bool timers) const {
  const Spans& spans = trace_.spans;
  const Op& op = trace_.op_of(row);
  std::size_t found = kNoRow;
  const auto take = [&](std::size_t candidate) {
    if (!timers && is_timer(trace_.op_of(candidate))) return;
    if (found == kNoRow || spans.end_s[candidate] > spans.end_s[found]) found = candidate;
  };
  if (row > first_ && trace_.op_of(row - 1).stream == op.stream) take(row - 1);
  for (const Dependency& dependency : op.after) {
    const int step = spans.step[row] - dependency.steps_back;
    // Inside a repeat an op has many rows: this is the latest one that had ended.
    auto it = std::upper_bound(by_op_.begin(), by_op_.end(), std::tuple(step, dependency.op, kNoRow));
    while (it != by_op_.begin()) {
      --it;
      const auto [its_step, its_op, its_row] = *it;
      if (its_step != step || its_op != dependency.op || spans.phase[its_row] != spans.phase[row]) break;
      if (its_row != row && (spans.end_s[its_row] <= spans.ready_s[row] ||
                             same_instant(spans.end_s[its_row], spans.ready_s[row]))) {
        take(its_row);
        break;
      }
    }
  }
  return found;
}

}  // namespace rehearse
