#include "simulator/trace/checkpoint_cost.hpp"

#include <algorithm>

#include "simulator/trace/metrics.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {

CheckpointTimes checkpoint_times(const Trace& trace) {
  const int last = last_step_number(trace, 0);
  const double begin_s = last_step(trace, 0).begin_s;
  CheckpointTimes times;
  const Spans& spans = trace.spans;
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    const auto [first, end] = rows_of_class(trace, static_cast<int>(c));
    double begins_s = trace.end_s;
    bool computes = false;
    for (std::size_t row = first; row < end; ++row) {
      if (spans.step[row] != last || who.job != 0) continue;
      const Op& op = trace.op_of(row);
      if (op.purpose == Purpose::checkpoint) {
        times.written_s = std::max(times.written_s, spans.end_s[row] - begin_s);
      } else if (op.purpose != Purpose::input) {
        times.trained_s = std::max(times.trained_s, spans.end_s[row] - begin_s);
        begins_s = std::min(begins_s, spans.ready_s[row]);
        computes = true;
      }
    }
    if (computes && who.role == kWorkers) times.blocked_s = std::max(times.blocked_s, begins_s - begin_s);
  }
  return times;
}

void add_checkpoint(Metrics& metrics, const CheckpointCost& cost, int every) {
  const double share_s = cost.stall_s / every, longer = (metrics.step_time_s + share_s) / metrics.step_time_s;
  metrics.step_time_s += share_s;
  metrics.breakdown.other_s += share_s;
  metrics.breakdown.checkpoint_s += share_s;
  for (double* rate : {&metrics.samples_per_s, &metrics.tokens_per_s, &metrics.model_tflops_per_device,
                       &metrics.mfu, &metrics.hfu, &metrics.busiest_utilization})
    *rate /= longer;
  metrics.checkpoint = cost;
}

}  // namespace rehearse
