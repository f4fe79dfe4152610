#include <algorithm>
#include <limits>
#include <map>

#include "simulator/trace/memory_timeline.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

double sum(const BytesByKind& bytes) {
  double total = 0;
  for (const double b : bytes) total += b;
  return total;
}

// Returns when the step's first update of weights begins; infinity if there is none.
double update_begin_s(const Trace& trace, int rank_class, int step) {
  double begin_s = std::numeric_limits<double>::infinity();
  const auto [first, last] = rows_of_class(trace, rank_class);
  for (std::size_t row = first; row < last; ++row)
    if (trace.spans.step[row] == step && trace.op_of(row).pass == Pass::optimizer)
      begin_s = std::min(begin_s, trace.spans.begin_s[row]);
  return begin_s;
}

MemoryPeak peak_of(const Trace& trace, int rank_class, int step, TensorMemory memory = TensorMemory::device) {
  const MemoryTimeline timeline = memory_timeline(trace, rank_class, step, memory);
  const FullestMoment fullest = fullest_moment(timeline);
  BytesByKind now = timeline.persistent;
  MemoryPeak peak{rank_class, step, false, fullest.total, fullest.by_kind, sum(now)};
  const double update_s = update_begin_s(trace, rank_class, step);
  for (const MemoryChange& change : timeline.changes) {
    now[static_cast<std::size_t>(change.kind)] += change.bytes;
    // At the update's beginning, what the backward pass used is freed first.
    if (change.time_s > update_s || (change.time_s == update_s && change.bytes > 0))
      peak.update = std::max(peak.update, sum(now));
  }
  return peak;
}

int endpoint_of(const Trace& trace, int job, const Schedule& schedule, int role, int rank) {
  return trace.run.jobs[job].endpoints[schedule.first_rank(role) + rank];
}

}  // namespace

MemoryTimeline memory_timeline(const Trace& trace, int rank_class, int step, TensorMemory memory) {
  return memory_timeline(live_tensors(trace, rank_class, step, memory));
}

MemoryTimeline memory_timeline(const LiveTensors& live) {
  MemoryTimeline timeline;
  for (std::size_t i = 0; i < live.tensors.size(); ++i) {
    const LiveTensor& one = live.tensors[i];
    const TensorKind kind = live.program->tensors[one.tensor].kind;
    if (one.persistent) {
      timeline.persistent[static_cast<std::size_t>(kind)] += one.bytes;
      continue;
    }
    timeline.changes.push_back({one.born_s, kind, one.bytes, i});
    timeline.changes.push_back({one.freed_s, kind, -one.bytes, i});
  }
  // An op begins when another ends, except for rounding: memory that is freed then is already gone.
  constexpr double kSameInstant = 1e-9;
  const auto instant = [&](const MemoryChange& change) {
    return change.bytes < 0 ? change.time_s - kSameInstant : change.time_s;
  };
  std::stable_sort(timeline.changes.begin(), timeline.changes.end(),
                   [&](const MemoryChange& a, const MemoryChange& b) { return instant(a) < instant(b); });
  for (std::size_t i = 1; i < timeline.changes.size(); ++i)
    timeline.changes[i].time_s = std::max(timeline.changes[i].time_s, timeline.changes[i - 1].time_s);
  return timeline;
}

FullestMoment fullest_moment(const MemoryTimeline& timeline) {
  BytesByKind now = timeline.persistent;
  FullestMoment fullest{0, sum(now), now};
  for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
    const MemoryChange& change = timeline.changes[i];
    now[static_cast<std::size_t>(change.kind)] += change.bytes;
    if (const double total = sum(now); total > fullest.total) fullest = {i + 1, total, now};
  }
  return fullest;
}

std::vector<MemoryPeak> memory_peaks(const Trace& trace, int job) {
  std::vector<MemoryPeak> peaks;
  std::map<int, std::size_t> server_at;  // by endpoint: index of the server's peak
  const int last_step = last_step_number(trace, job);
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    if (who.job != job) continue;
    const Schedule& schedule = *trace.run.jobs[job].phases.front().schedule;
    const bool server = who.role != kWorkers;
    // The endless streams of asynchronous servers do all their work in step 0.
    const int step = server && schedule.asynchrony ? 0 : last_step;
    peaks.push_back(peak_of(trace, static_cast<int>(c), step));
    peaks.back().server = server;
    for (const int rank : who.ranks)
      if (server) server_at[endpoint_of(trace, job, schedule, who.role, rank)] = peaks.size() - 1;
  }
  for (MemoryPeak& peak : peaks) {
    if (peak.server) continue;
    const RankClass& who = trace.classes[peak.rank_class];
    const Schedule& schedule = *trace.run.jobs[job].phases.front().schedule;
    const MemoryPeak* beside = nullptr;
    for (const int rank : who.ranks) {
      const auto it = server_at.find(endpoint_of(trace, job, schedule, who.role, rank));
      if (it != server_at.end() && (beside == nullptr || peaks[it->second].total > beside->total))
        beside = &peaks[it->second];
    }
    if (beside == nullptr) continue;
    peak.beside = beside->rank_class;
    peak.total += beside->total;
    peak.update += beside->update;
    for (std::size_t kind = 0; kind < peak.by_kind.size(); ++kind)
      peak.by_kind[kind] += beside->by_kind[kind];
  }
  return peaks;
}

MemoryPeak fullest_worker(const std::vector<MemoryPeak>& peaks) {
  MemoryPeak fullest;
  for (const MemoryPeak& peak : peaks)
    if (!peak.server && peak.total > fullest.total) fullest = peak;
  return fullest;
}

MemoryUse memory_use(const Trace& trace, int job, double capacity_bytes) {
  MemoryUse use;
  use.capacity = capacity_bytes;
  const MemoryPeak fullest = fullest_worker(memory_peaks(trace, job));
  if (fullest.total > 0)
    use.fullest = trace.run.jobs[job]
                      .phases.front()
                      .schedule->programs[trace.classes[fullest.rank_class].phase_program]
                      .name;
  const auto of = [&](TensorKind kind) { return fullest.by_kind[static_cast<std::size_t>(kind)]; };
  use.weights = of(TensorKind::weight);
  use.gradients = of(TensorKind::gradient);
  use.optimizer = of(TensorKind::optimizer_state);
  use.activations = of(TensorKind::activation) + of(TensorKind::activation_gradient) + of(TensorKind::batch);
  use.buffers = of(TensorKind::buffer);
  use.total = fullest.total;
  use.fits = capacity_bytes <= 0 || use.total <= capacity_bytes;  // 0: unknown
  return use;
}

HostMemoryUse host_memory_use(const Trace& trace, int job, const Cluster& cluster, double factor) {
  std::map<int, std::pair<BytesByKind, BytesByKind>> by_node;  // in host memory, on NVMe
  const int last_step = last_step_number(trace, job);
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    if (who.job != job || who.role != kWorkers) continue;
    const MemoryPeak host = peak_of(trace, static_cast<int>(c), last_step, TensorMemory::host);
    const MemoryPeak nvme = peak_of(trace, static_cast<int>(c), last_step, TensorMemory::nvme);
    if (host.total + nvme.total <= 0) continue;
    const Schedule& schedule = *trace.run.jobs[job].phases.front().schedule;
    for (const int rank : who.ranks) {
      const int endpoint = endpoint_of(trace, job, schedule, who.role, rank);
      auto& [in_memory, on_nvme] = by_node[cluster.node_of(endpoint)];
      for (std::size_t kind = 0; kind < in_memory.size(); ++kind) {
        in_memory[kind] += host.by_kind[kind];
        on_nvme[kind] += nvme.by_kind[kind];
      }
    }
  }
  HostMemoryUse use;
  use.capacity = cluster.node().cpu_memory_bytes;
  for (const auto& [node, bytes] : by_node) {
    const BytesByKind &in_memory = bytes.first, &on_nvme = bytes.second;
    use.nvme = std::max(use.nvme, sum(on_nvme));
    if (sum(in_memory) <= use.total) continue;
    const auto of = [&](TensorKind kind) { return in_memory[static_cast<std::size_t>(kind)]; };
    use.weights = of(TensorKind::weight);
    use.gradients = of(TensorKind::gradient);
    use.optimizer = of(TensorKind::optimizer_state);
    use.buffers = of(TensorKind::buffer);
    use.total = sum(in_memory);
    use.fullest = "node" + std::to_string(node);
  }
  if (factor > 1) {
    use.buffers += (factor - 1) * use.total;
    use.total *= factor;
  }
  use.fits = use.capacity <= 0 || use.total <= use.capacity;
  return use;
}

}  // namespace rehearse
