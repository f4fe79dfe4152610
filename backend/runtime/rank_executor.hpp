// One rank of a schedule, carried out: a thread for each of its streams, which goes through the stream's ops
// in order, each after what it depends on, as the simulator's engine does.
#pragma once

#include <functional>
#include <vector>

#include "backend/runtime/hardware.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// What a rank did, op by op; streams one after the other, each in its order.
struct RankSpan {
  OpCall call;
  double ready_s = 0, begin_s = 0, end_s = 0;  // this machine's monotonic clock
  int sender = -1;
};

// Carries out the program of `rank` of `role`, `repeats` times. RunError if an op fails, from the stream that
// failed first; the others are stopped. Signals to other ranks' counters are refused. `on_span` is called by
// the streams' threads as ops end, where their times are known by then.
std::vector<RankSpan> execute_rank(const Schedule& schedule, int role, int rank, int repeats,
                                   Hardware& hardware,
                                   const std::function<void(const RankSpan&)>& on_span = {});

}  // namespace rehearse
