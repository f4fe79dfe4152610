// Helpers for the rows of a trace that several of its readers share.
#pragma once

#include <algorithm>
#include <utility>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// Returns the rows [first, second) of one class: rows are ordered by class.
inline std::pair<std::size_t, std::size_t> rows_of_class(const Trace& trace, int rank_class) {
  const auto& column = trace.spans.rank_class;
  const auto range = std::equal_range(column.begin(), column.end(), rank_class);
  return {static_cast<std::size_t>(range.first - column.begin()),
          static_cast<std::size_t>(range.second - column.begin())};
}

inline const Schedule& schedule_of(const Trace& trace, std::size_t row) {
  const RankClass& rank_class = trace.classes[trace.spans.rank_class[row]];
  return *trace.run.jobs[rank_class.job].phases[trace.spans.phase[row]].schedule;
}

inline bool on_server(const Trace& trace, std::size_t row) {
  return trace.classes[trace.spans.rank_class[row]].role != kWorkers;
}

inline bool is_transfer(const Op& op) {
  return op.kind == OpKind::exchange || op.kind == OpKind::collective;
}

// Returns whether the op copies between the memory of its device and that of the node's processors.
inline bool copies_to_or_from_device(const Op& op) {
  return op.kind == OpKind::host &&
         (op.host_action == HostAction::copy_to_host || op.host_action == HostAction::copy_to_device);
}

// Returns whether the op sleeps until a time that was set when the schedule was written.
inline bool is_timer(const Op& op) {
  return op.kind == OpKind::host && op.host_action == HostAction::sleep;
}

// Returns the number of the last step of a job; for asynchronous workers, that of the first measured round of
// each. -1 if the job ran no op.
inline int last_step_number(const Trace& trace, int job) {
  if (const auto& asynchrony = trace.run.jobs[job].phases.back().schedule->asynchrony)
    return asynchrony->warmup_rounds;
  int last = -1;
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    if (trace.classes[trace.spans.rank_class[row]].job == job) last = std::max(last, trace.spans.step[row]);
  }
  return last;
}

}  // namespace rehearse
