// Divides a step into its parts. A rank that does not compute waits for something: starting from the op that
// begins after the gap, we attribute the idle time by walking back over the ops that it waited for. Each
// blocker is the dependency or predecessor on the stream that ended last.
#include <algorithm>
#include <tuple>

#include "simulator/trace/causes.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/rows.hpp"
#include "simulator/trace/work_waits.hpp"

namespace rehearse {
namespace {

// Sums of thousands of pieces; long double keeps their total exact to the last digit of a double.
struct Sums {
  long double compute = 0, data_stall = 0, pipeline_bubble = 0, other = 0;
  long double launches = 0, process = 0, checkpoint = 0;  // parts of `other`
  long double slowed = 0;                                 // part of `compute`
  std::map<Purpose, long double> exposed;
};

class ClassBreakdown {
public:
  ClassBreakdown(const Trace& trace, int rank_class, StepWindow window)
      : trace_(trace), spans_(trace.spans), window_(window), causes_(trace, rank_class), waits_(trace) {
    std::tie(first_, last_) = rows_of_class(trace, rank_class);
    const RankClass& who = trace.classes[rank_class];
    const Role& role = trace.run.jobs[who.job].phases.front().schedule->roles[who.role];
    for (const Mesh& mesh : role.meshes) {
      const int axis = mesh.axis("pipeline");
      in_pipeline_ = in_pipeline_ || (axis >= 0 && mesh.axes()[axis].size > 1);
    }
  }

  Sums run() {
    std::vector<std::size_t> computing;
    for (std::size_t row = first_; row < last_; ++row) {
      if (trace_.op_of(row).kind == OpKind::compute && spans_.end_s[row] > spans_.begin_s[row] &&
          spans_.end_s[row] > window_.begin_s && spans_.begin_s[row] < window_.end_s) {
        computing.push_back(row);
      }
    }
    std::stable_sort(computing.begin(), computing.end(),
                     [&](std::size_t a, std::size_t b) { return spans_.begin_s[a] < spans_.begin_s[b]; });
    double told = window_.begin_s;  // all time before this is attributed
    for (const std::size_t row : computing) {
      if (spans_.begin_s[row] > told) {
        walk_back(row, told, spans_.begin_s[row]);
        told = spans_.begin_s[row];
      }
      const double end = std::min(spans_.end_s[row], window_.end_s);
      if (end > told) {
        // Time that kernels wait to be issued is attributed to the beginning of their op, wherever in the op
        // it occurred.
        const double launched = std::clamp(spans_.begin_s[row] + launch_wait_s(row), told, end);
        sums_.launches += static_cast<long double>(launched) - told;
        sums_.other += static_cast<long double>(launched) - told;
        // So are the waits between kernels that a profile measured.
        const WorkWaits::Waits waits = waits_.of(row);
        const double data = std::min(waits.data_s, end - launched);
        const double process = std::min(waits.process_s, end - launched - data);
        sums_.data_stall += data;
        sums_.process += process;
        sums_.other += process;
        sums_.compute += static_cast<long double>(end) - launched - data - process;
        if (!spans_.slowed_s.empty() && spans_.end_s[row] > spans_.begin_s[row])
          sums_.slowed += static_cast<long double>(spans_.slowed_s[row]) * (end - told) /
                          (spans_.end_s[row] - spans_.begin_s[row]);
        told = end;
      }
    }
    tail(told);
    return std::move(sums_);
  }

private:
  // After the last computation: attributes the ops that still run; after them, the rank has nothing to do.
  void tail(double told) {
    if (told >= window_.end_s) return;
    std::size_t latest = kNoRow;
    for (std::size_t row = first_; row < last_; ++row) {
      if (latest == kNoRow || spans_.end_s[row] > spans_.end_s[latest]) latest = row;
    }
    double hi = window_.end_s;
    const double end = latest == kNoRow ? told : std::clamp(spans_.end_s[latest], told, hi);
    nothing_to_do(end, hi);
    hi = end;
    if (hi > told) walk_back(latest, told, own_time(latest, told, hi));
  }

  // Attributes [lo, hi), during which `row` was not yet ready.
  void walk_back(std::size_t row, double lo, double hi) {
    while (hi > lo) {
      const std::size_t blocker = causes_.blocker_of(row);
      if (blocker == kNoRow) {
        nothing_to_do(lo, hi);
        return;
      }
      const double end = std::max(lo, spans_.end_s[blocker]);
      if (end < hi && !same_instant(end, hi)) {
        sums_.other += static_cast<long double>(hi) - end;
        hi = end;
      }
      hi = own_time(blocker, lo, hi);
      row = blocker;
    }
  }

  // Attributes the part of [lo, hi) during which `row` itself was running; returns the end of the time before
  // it.
  double own_time(std::size_t row, double lo, double hi) {
    const Op& op = trace_.op_of(row);
    const double begin = std::clamp(spans_.begin_s[row], lo, hi);
    const double ready = std::clamp(spans_.ready_s[row], lo, begin);
    const long double under_way = static_cast<long double>(hi) - begin;
    const long double waiting = static_cast<long double>(begin) - ready;
    if (op.purpose == Purpose::input ||
        (op.kind == OpKind::host && op.host_action == HostAction::load_batch)) {
      sums_.data_stall += under_way + waiting;
    } else if (op.purpose == Purpose::checkpoint) {
      sums_.checkpoint += under_way + waiting;
      sums_.other += under_way + waiting;
    } else if (is_transfer(op)) {
      if (under_way > 0) sums_.exposed[op.purpose] += under_way;
      (traits_of(op.purpose).late_side_is_a_bubble ? sums_.pipeline_bubble : sums_.other) += waiting;
    } else if (op.kind == OpKind::host && op.purpose != Purpose::none) {
      sums_.exposed[op.purpose] += under_way + waiting;
    } else if (is_timer(op)) {
      sums_.exposed[Purpose::fusion_cycle] += under_way + waiting;
    } else if (op.kind == OpKind::compute) {
      sums_.compute += under_way;  // only a rounding error: computation is never part of a gap
      sums_.other += waiting;
    } else {
      sums_.other += under_way + waiting;
    }
    return ready;
  }

  double launch_wait_s(std::size_t row) const { return spans_.latency_s.empty() ? 0 : spans_.latency_s[row]; }

  void nothing_to_do(double lo, double hi) {
    (in_pipeline_ ? sums_.pipeline_bubble : sums_.other) += static_cast<long double>(hi) - lo;
  }

  const Trace& trace_;
  const Spans& spans_;
  StepWindow window_;
  Causes causes_;
  WorkWaits waits_;
  std::size_t first_ = 0, last_ = 0;
  bool in_pipeline_ = false;
  Sums sums_;
};

// Returns the window of a rank that does not end a step together with others: from its own end of the
// previous step.
StepWindow own_last_step(const Trace& trace, int rank_class) {
  const auto [first, end] = rows_of_class(trace, rank_class);
  const int last = last_step_number(trace, trace.classes[rank_class].job);
  StepWindow window;
  for (std::size_t row = first; row < end; ++row) {
    double& side = trace.spans.step[row] < last ? window.begin_s : window.end_s;
    side = std::max(side, trace.spans.end_s[row]);
  }
  return window;
}

// A class's parts of its own window, and the window's length.
struct ClassParts {
  Sums sums;
  long double window_s = 0, ranks = 0;
};

// The parts of each class of workers, and the time of a step to which their windows are scaled.
struct StepParts {
  std::vector<ClassParts> classes;
  long double step_s = 0;
};

StepParts parts_of(const Trace& trace, int job) {
  const Schedule& last = *trace.run.jobs[job].phases.back().schedule;
  StepWindow step;
  StepParts parts;
  if (last.asynchrony) {
    const AsynchronyFigures figures = asynchrony_figures(trace, job);
    step = {figures.window_begin_s, figures.window_end_s};
    parts.step_s = static_cast<long double>(last.samples / figures.samples_per_s);
  } else {
    step = last_step(trace, job);
    parts.step_s = static_cast<long double>(step.end_s) - step.begin_s;
  }
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& rank_class = trace.classes[c];
    if (rank_class.job != job || rank_class.role != kWorkers) continue;
    StepWindow window = step;
    if (last.staggered && !last.asynchrony) window = own_last_step(trace, static_cast<int>(c));
    parts.classes.push_back({ClassBreakdown(trace, static_cast<int>(c), window).run(),
                             static_cast<long double>(window.end_s) - window.begin_s,
                             static_cast<long double>(rank_class.ranks.size())});
  }
  return parts;
}

// Calls visit() with each pair of equal members.
template <class Visit>
void each_part(Sums& a, const Sums& b, Visit visit) {
  for (long double Sums::*part : {&Sums::compute, &Sums::data_stall, &Sums::pipeline_bubble, &Sums::other,
                                  &Sums::launches, &Sums::process, &Sums::checkpoint, &Sums::slowed})
    visit(a.*part, b.*part);
  for (const auto& entry : b.exposed) a.exposed.try_emplace(entry.first, 0);
  for (auto& [purpose, seconds] : a.exposed) {
    const auto other = b.exposed.find(purpose);
    visit(seconds, other == b.exposed.end() ? 0 : other->second);
  }
}

// Returns the mean over all ranks, each scaled from its own window to the time of a step; a window of no time
// is not scaled.
Breakdown mean_of(const StepParts& parts) {
  Sums total;
  long double ranks = 0, exposed = 0;
  for (const ClassParts& its : parts.classes) {
    ranks += its.ranks;
    const long double weight = its.ranks * (its.window_s > 0 ? parts.step_s / its.window_s : 1);
    each_part(total, its.sums, [&](long double& sum, long double seconds) { sum += weight * seconds; });
  }
  Breakdown breakdown;
  if (ranks == 0) return breakdown;
  const auto mean = [&](long double sum) { return static_cast<double>(sum / ranks); };
  breakdown.compute_s = mean(total.compute);
  breakdown.data_stall_s = mean(total.data_stall);
  breakdown.pipeline_bubble_s = mean(total.pipeline_bubble);
  breakdown.other_s = mean(total.other);
  breakdown.launches_s = mean(total.launches);
  breakdown.process_s = mean(total.process);
  breakdown.checkpoint_s = mean(total.checkpoint);
  breakdown.slowed_s = mean(total.slowed);
  for (const auto& [purpose, seconds] : total.exposed) {
    exposed += seconds;
    breakdown.exposed_s[purpose] = mean(seconds);
  }
  breakdown.exposed_communication_s = mean(exposed);
  return breakdown;
}

}  // namespace

Breakdown break_down(const Trace& trace, int job) {
  return mean_of(parts_of(trace, job));
}

Breakdown break_down(const Trace& shorter, const Trace& longer, double repeats) {
  const StepParts few = parts_of(shorter, 0);
  StepParts whole = parts_of(longer, 0);
  const auto extend = [&](long double& figure, long double at_shorter) {
    figure += static_cast<long double>(repeats) * (figure - at_shorter);
  };
  for (std::size_t c = 0; c < whole.classes.size(); ++c) {
    each_part(whole.classes[c].sums, few.classes[c].sums, extend);
    extend(whole.classes[c].window_s, few.classes[c].window_s);
  }
  extend(whole.step_s, few.step_s);
  return mean_of(whole);
}

}  // namespace rehearse
