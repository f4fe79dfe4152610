#include "simulator/trace/critical_path.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "simulator/trace/causes.hpp"
#include "simulator/trace/rows.hpp"
#include "simulator/trace/sides.hpp"
#include "simulator/trace/work_waits.hpp"

namespace rehearse {
namespace {

std::string pass_name(Pass pass) {
  if (pass == Pass::other) return "compute";
  std::string name(kPassNames[static_cast<std::size_t>(pass)]);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

class Walk {
public:
  Walk(const Trace& trace, int job)
      : trace_(trace),
        spans_(trace.spans),
        job_(job),
        window_(last_step(trace, job)),
        sides_(trace),
        waits_(trace),
        causes_(trace.classes.size()) {}

  std::vector<PathSegment> run() {
    std::size_t row = kNoRow;
    for (std::size_t r = 0; r < spans_.size(); ++r) {
      if (trace_.classes[spans_.rank_class[r]].job != job_ || trace_.op_of(r).for_next_step) continue;
      if (row == kNoRow || spans_.end_s[r] > spans_.end_s[row]) row = r;
    }
    at_ = window_.end_s;
    // Causes are earlier or at the same time; the count only guards against a trace that contradicts itself.
    for (std::size_t moves = 0; row != kNoRow && at_ > window_.begin_s && moves <= spans_.size(); ++moves)
      row = before(row);
    add(kNoRow, window_.begin_s, "waiting");
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

private:
  // Extends the path from `at_` back to `begin_s` with this row.
  void add(std::size_t row, double begin_s, std::string kind) {
    begin_s = std::max(begin_s, window_.begin_s);
    if (begin_s >= at_) return;
    path_.push_back({row, begin_s, at_, std::move(kind)});
    at_ = begin_s;
  }

  // Adds the part of `row` before `at_` to the path; returns the row that it waited for.
  std::size_t before(std::size_t row) {
    const Op& op = trace_.op_of(row);
    if (op.kind == OpKind::wait_until) {
      const std::size_t signal = sides_.signal_for(row);
      if (signal == kNoRow || spans_.end_s[signal] <= spans_.ready_s[row]) return wait_before(row);
      wait_until(spans_.end_s[signal]);
      return signal;
    }
    const double begin_s = spans_.begin_s[row];
    if (is_transfer(op)) {
      const std::string name(traits_of(op.purpose).waiting);
      if (!spans_.latency_s.empty()) add(row, begin_s + spans_.latency_s[row], name);
      add(row, begin_s, spans_.latency_s.empty() ? name : "latency");
      return wait_before(last_side(row));
    }
    if (op.kind == OpKind::host) {
      constexpr std::array<const char*, kHostActionNames.size()> kKinds = {
          "data",      "checkpoint",  "fusion cycle",  "host copy",
          "host copy", "host update", "NVMe transfer", "NVMe transfer"};
      add(row, begin_s,
          op.purpose == Purpose::input        ? "data"
          : op.purpose == Purpose::checkpoint ? "checkpoint"
                                              : kKinds[static_cast<std::size_t>(op.host_action)]);
    } else {
      const double launched_s = begin_s + (spans_.latency_s.empty() ? 0 : spans_.latency_s[row]);
      add_computation(row, launched_s);
      if (launched_s > begin_s) add(row, begin_s, std::string(kLaunches));
    }
    return wait_before(row);
  }

  // Adds a computation whose kernels are launched from `launched_s` on. As in breakdown.cpp, the waits that a
  // profile measured come first.
  void add_computation(std::size_t row, double launched_s) {
    const Op& op = trace_.op_of(row);
    const auto [process_s, data_s] = waits_.of(row);
    add(row, launched_s + data_s + process_s, on_server(trace_, row) ? "server work" : pass_name(op.pass));
    add(kNoRow, launched_s + data_s, "waiting");
    add(kNoRow, launched_s, "data");
  }

  // The side that was ready last delayed the others.
  std::size_t last_side(std::size_t row) const {
    std::size_t last = row;
    for (const std::size_t side : sides_.of(row))
      if (spans_.ready_s[side] > spans_.ready_s[last] &&
          !same_instant(spans_.ready_s[side], spans_.ready_s[last]))
        last = side;
    return last;
  }

  std::size_t wait_before(std::size_t row) {
    wait_until(spans_.ready_s[row]);
    std::optional<Causes>& causes = causes_[spans_.rank_class[row]];
    if (!causes) causes.emplace(trace_, spans_.rank_class[row]);
    const std::size_t blocker = causes->blocker_of(row);
    if (blocker == kNoRow) return blocker;
    // A timer is set for an op that becomes ready before it expires: the path goes through that op, and then
    // the timer.
    const std::size_t awaited = is_timer(trace_.op_of(blocker)) ? causes->blocker_of(row, false) : kNoRow;
    wait_until(spans_.end_s[blocker]);
    if (awaited == kNoRow) return blocker;
    add(blocker, spans_.end_s[awaited], "fusion cycle");
    return awaited;
  }

  void wait_until(double time_s) {
    if (!same_instant(time_s, at_)) add(kNoRow, time_s, "waiting");
  }

  const Trace& trace_;
  const Spans& spans_;
  int job_;
  StepWindow window_;
  Sides sides_;
  WorkWaits waits_;
  std::vector<std::optional<Causes>> causes_;
  double at_ = 0;
  std::vector<PathSegment> path_;
};

}  // namespace

std::vector<PathSegment> critical_path(const Trace& trace, int job) {
  return Walk(trace, job).run();
}

std::vector<std::pair<std::string, double>> seconds_by_kind(const std::vector<PathSegment>& path) {
  std::map<std::string, long double> sums;
  for (const PathSegment& segment : path)
    sums[segment.kind] += static_cast<long double>(segment.end_s) - segment.begin_s;
  std::vector<std::pair<std::string, double>> kinds;
  for (const auto& [kind, seconds] : sums) kinds.emplace_back(kind, static_cast<double>(seconds));
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return kinds;
}

}  // namespace rehearse
