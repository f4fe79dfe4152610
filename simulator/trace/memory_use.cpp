#include <algorithm>
#include <limits>
#include <map>

#include "simulator/trace/memory_timeline.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

struct Lifetime {
  double first_write_s = std::numeric_limits<double>::infinity();
  double first_read_s = std::numeric_limits<double>::infinity();
  double last_use_s = -std::numeric_limits<double>::infinity();
};

struct Peak {
  double total = 0;
  BytesByKind by_kind{};
};

double sum(const BytesByKind& bytes) {
  double total = 0;
  for (const double b : bytes) total += b;
  return total;
}

Peak peak_of(const MemoryTimeline& timeline) {
  BytesByKind now = timeline.persistent;
  Peak peak{sum(now), now};
  for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
    const MemoryChange& change = timeline.changes[i];
    now[static_cast<std::size_t>(change.kind)] += change.bytes;
    const double total = sum(now);
    if (total > peak.total) peak = {total, now};
  }
  return peak;
}

int endpoint_of(const Trace& trace, int job, const Schedule& schedule, int role, int rank) {
  return trace.run.jobs[job].endpoints[schedule.first_rank(role) + rank];
}

// Peaks of ranks that are no workers, by endpoint: what a server on a worker's device needs there. Its own
// peak and the worker's need not come at the same time; the sum is what both have to reserve.
std::map<int, Peak> servers_on_devices(const Trace& trace, int job) {
  std::map<int, Peak> peaks;
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& rank_class = trace.classes[c];
    const Schedule& schedule = *trace.run.jobs[rank_class.job].phases.front().schedule;
    if (rank_class.job != job || schedule.roles[rank_class.role].name == "worker") continue;
    // What its streams serve for ever is all of its step 0.
    const int step = schedule.asynchrony ? 0 : last_step_number(trace, job);
    const Peak peak = peak_of(memory_timeline(trace, static_cast<int>(c), step));
    for (const int rank : rank_class.ranks)
      peaks[endpoint_of(trace, job, schedule, rank_class.role, rank)] = peak;
  }
  return peaks;
}

}  // namespace

MemoryTimeline memory_timeline(const Trace& trace, int rank_class, int step) {
  MemoryTimeline timeline;
  const auto [first, last] = rows_of_class(trace, rank_class);
  const Spans& spans = trace.spans;
  const Program* program = nullptr;
  const Role* role = nullptr;
  std::vector<Lifetime> lifetimes;
  double step_begin_s = std::numeric_limits<double>::infinity();
  for (std::size_t row = first; row < last; ++row) {
    if (spans.step[row] != step) continue;
    if (program == nullptr) {
      program = &trace.program_of(row);
      role = &schedule_of(trace, row).roles[trace.classes[rank_class].role];
      lifetimes.resize(program->tensors.size());
    }
    step_begin_s = std::min(step_begin_s, spans.ready_s[row]);
    const Op& op = program->ops[spans.op[row]];
    for (const int tensor : op.writes) {
      Lifetime& life = lifetimes[tensor];
      life.first_write_s = std::min(life.first_write_s, spans.begin_s[row]);
      life.last_use_s = std::max(life.last_use_s, spans.end_s[row]);
    }
    for (const int tensor : op.reads) {
      Lifetime& life = lifetimes[tensor];
      life.first_read_s = std::min(life.first_read_s, spans.begin_s[row]);
      life.last_use_s = std::max(life.last_use_s, spans.end_s[row]);
    }
  }
  if (program == nullptr) return timeline;
  const int rank = trace.classes[rank_class].ranks.front();
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const Tensor& tensor = program->tensors[i];
    const double bytes = tensor.bytes.at(*role, rank);
    if (tensor.persistent()) {
      timeline.persistent[static_cast<std::size_t>(tensor.kind)] += bytes;
      continue;
    }
    const Lifetime& life = lifetimes[i];
    if (life.last_use_s < life.first_write_s && life.last_use_s < life.first_read_s)
      continue;  // nobody uses it
    const double begin_s = life.first_read_s < life.first_write_s ? step_begin_s : life.first_write_s;
    timeline.changes.push_back({begin_s, tensor.kind, bytes});
    timeline.changes.push_back({life.last_use_s, tensor.kind, -bytes});
  }
  std::stable_sort(timeline.changes.begin(), timeline.changes.end(),
                   [](const MemoryChange& a, const MemoryChange& b) {
                     return a.time_s != b.time_s ? a.time_s < b.time_s : a.bytes < b.bytes;
                   });
  return timeline;
}

MemoryUse memory_use(const Trace& trace, int job, double capacity_bytes) {
  MemoryUse use;
  use.capacity = capacity_bytes;
  const int step = last_step_number(trace, job);
  Peak fullest;
  const std::map<int, Peak> beside = servers_on_devices(trace, job);
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& rank_class = trace.classes[c];
    const Schedule& schedule = *trace.run.jobs[rank_class.job].phases.front().schedule;
    if (rank_class.job != job || schedule.roles[rank_class.role].name != "worker") continue;
    Peak peak = peak_of(memory_timeline(trace, static_cast<int>(c), step));
    const Peak* server = nullptr;  // the fullest one beside a rank of this class
    for (const int rank : rank_class.ranks) {
      const auto it = beside.find(endpoint_of(trace, job, schedule, rank_class.role, rank));
      if (it != beside.end() && (server == nullptr || it->second.total > server->total)) server = &it->second;
    }
    if (server != nullptr) {
      peak.total += server->total;
      for (std::size_t kind = 0; kind < peak.by_kind.size(); ++kind)
        peak.by_kind[kind] += server->by_kind[kind];
    }
    if (peak.total > fullest.total) {
      fullest = peak;
      use.fullest = schedule.programs[rank_class.phase_program].name;
    }
  }
  const auto of = [&](TensorKind kind) { return fullest.by_kind[static_cast<std::size_t>(kind)]; };
  use.weights = of(TensorKind::weight);
  use.gradients = of(TensorKind::gradient);
  use.optimizer = of(TensorKind::optimizer_state);
  use.activations = of(TensorKind::activation) + of(TensorKind::activation_gradient) + of(TensorKind::batch);
  use.buffers = of(TensorKind::buffer);
  use.total = fullest.total;
  use.fits = capacity_bytes <= 0 || use.total <= capacity_bytes;  // 0: not known
  return use;
}

}  // namespace rehearse
