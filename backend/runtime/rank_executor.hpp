// Runs one rank of a schedule: a thread for each of its streams runs the stream's ops in order, each after
// its dependencies, as the simulator's engine does.
#pragma once

#include <functional>
#include <vector>

#include "backend/runtime/hardware.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// An op that a rank has run. Spans are ordered by stream and, within a stream, by execution.
struct RankSpan {
  OpCall call;
  double ready_s = 0, begin_s = 0, end_s = 0;  // this machine's monotonic clock
  int sender = -1;
};

// Runs the program of `rank` of `role`, `repeats` times. If an op fails, stops the other streams and throws
// the RunError of the stream that failed first. Throws RunError for ops that signal other ranks' counters.
// The streams' threads call `on_span` as ops end, if their times are known by then.
std::vector<RankSpan> execute_rank(const Schedule& schedule, int role, int rank, int repeats,
                                   Hardware& hardware,
                                   const std::function<void(const RankSpan&)>& on_span = {});

// Repetitions [first, end) of a schedule. All streams have ended before the next repetitions begin.
struct Repetitions {
  int first = 0, end = 0;
  bool last = true;  // no others follow
};
std::vector<RankSpan> execute_rank(const Schedule& schedule, int role, int rank, Repetitions repetitions,
                                   Hardware& hardware,
                                   const std::function<void(const RankSpan&)>& on_span = {});

}  // namespace rehearse
