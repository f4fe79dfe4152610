#include "simulator/trace/memory_moment.hpp"

#include <algorithm>

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

// Returns the op that runs at a time; that of the first stream if there are several.
int running_op(const Trace& trace, int rank_class, int step, double time_s) {
  const auto [first, last] = rows_of_class(trace, rank_class);
  const Spans& spans = trace.spans;
  for (std::size_t row = first; row < last; ++row)
    if (spans.step[row] == step && spans.begin_s[row] <= time_s && time_s < spans.end_s[row])
      return spans.op[row];
  return -1;
}

}  // namespace

MemoryMoment moment_after(const LiveTensors& live, const MemoryTimeline& timeline, std::size_t changes) {
  MemoryMoment moment;
  moment.program = live.program;
  std::vector<bool> here(live.tensors.size());
  for (std::size_t i = 0; i < live.tensors.size(); ++i) here[i] = live.tensors[i].persistent;
  for (std::size_t i = 0; i < changes; ++i) here[timeline.changes[i].tensor] = timeline.changes[i].bytes > 0;
  if (changes > 0) moment.time_s = timeline.changes[changes - 1].time_s - live.begin_s;
  for (std::size_t i = 0; i < live.tensors.size(); ++i) {
    if (!here[i] || !(live.tensors[i].bytes > 0)) continue;
    LiveTensor one = live.tensors[i];
    one.born_s -= live.begin_s;
    one.freed_s -= live.begin_s;
    moment.bytes += one.bytes;
    moment.tensors.push_back(one);
  }
  std::stable_sort(moment.tensors.begin(), moment.tensors.end(),
                   [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  return moment;
}

MemoryMoment peak_moment(const Trace& trace, int rank_class, int step) {
  const LiveTensors live = live_tensors(trace, rank_class, step);
  const MemoryTimeline timeline = memory_timeline(live);
  const std::size_t changes = fullest_moment(timeline).changes;
  MemoryMoment moment = moment_after(live, timeline, changes);
  moment.rank_class = rank_class;
  if (changes > 0) moment.op = live.tensors[timeline.changes[changes - 1].tensor].born_in;
  if (moment.op < 0) moment.op = running_op(trace, rank_class, step, live.begin_s + moment.time_s);
  return moment;
}

std::vector<MemoryMoment> fullest_device(const Trace& trace, int job) {
  const std::vector<MemoryPeak> peaks = memory_peaks(trace, job);
  const MemoryPeak fullest = fullest_worker(peaks);
  if (!(fullest.total > 0)) return {};
  std::vector<MemoryMoment> moments = {peak_moment(trace, fullest.rank_class, fullest.step)};
  for (const MemoryPeak& peak : peaks)
    if (peak.rank_class == fullest.beside) moments.push_back(peak_moment(trace, peak.rank_class, peak.step));
  return moments;
}

}  // namespace rehearse
