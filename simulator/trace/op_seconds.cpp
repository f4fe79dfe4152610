#include "simulator/trace/op_seconds.hpp"

#include <algorithm>
#include <optional>

#include "simulator/trace/causes.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

using Interval = std::pair<double, double>;

// The time covered by the figures: the last step, or rounds of asynchronous workers, which count with weight
// `share`.
struct Span {
  StepWindow window;
  double share = 1;
};

class Counted {
public:
  Counted(const Trace& trace, int job) : trace_(trace), step_(last_step_number(trace, job)) {
    const Schedule& schedule = *trace.run.jobs[job].phases.back().schedule;
    window_ = last_step(trace, job);
    share_ = 1.0 / schedule.optimizer_steps;
    if (!schedule.asynchrony) return;
    figures_ = asynchrony_figures(trace, job);
    step_s_ = schedule.samples / figures_->samples_per_s;
  }

  // Returns the time in which ranks are considered, and the weight of their rows.
  Span span() const {
    if (!figures_) return {window_, share_};
    return {window_, step_s_ / (window_.end_s - window_.begin_s)};
  }
  // Returns the part of a row that counts. Rounds of asynchronous workers can begin before their window and
  // end after it.
  double part_of(std::size_t row) const {
    if (!figures_) return trace_.spans.step[row] == step_ ? 1 : 0;
    const double begin_s = trace_.spans.begin_s[row], end_s = trace_.spans.end_s[row];
    const double within_s = std::min(end_s, window_.end_s) - std::max(begin_s, window_.begin_s);
    if (end_s > begin_s) return std::max(0.0, within_s) / (end_s - begin_s);
    return within_s >= 0 ? 1 : 0;
  }

private:
  const Trace& trace_;
  int step_ = 0;
  StepWindow window_;
  double share_ = 1, step_s_ = 0;
  std::optional<AsynchronyFigures> figures_;
};

OpSeconds kind_of(const Op& op, const Role& role, bool works) {
  const std::string_view pass = kPassNames[static_cast<std::size_t>(op.pass)];
  OpSeconds kind{std::string(pass), std::string(kOpKindNames[static_cast<std::size_t>(op.kind)])};
  if (is_transfer(op)) kind.name = traits_of(op.purpose).waiting;
  if (op.kind == OpKind::collective)
    kind.kind = kCollectiveNames[static_cast<std::size_t>(op.collective.kind)];
  std::replace(kind.name.begin(), kind.name.end(), '_', ' ');
  if (!works) kind.name += " on " + role.name + "s";
  return kind;
}

// Sorts and merges the intervals.
std::vector<Interval> united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> merged;
  for (const Interval& interval : intervals) {
    if (!merged.empty() && interval.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, interval.second);
    else
      merged.push_back(interval);
  }
  return merged;
}

double length(const std::vector<Interval>& intervals) {
  long double sum = 0;
  for (const Interval& interval : intervals)
    sum += static_cast<long double>(interval.second) - interval.first;
  return static_cast<double>(sum);
}

double common_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  long double sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double begin = std::max(a[i].first, b[j].first), end = std::min(a[i].second, b[j].second);
    if (end > begin) sum += static_cast<long double>(end) - begin;
    a[i].second < b[j].second ? ++i : ++j;
  }
  return static_cast<double>(sum);
}

}  // namespace

std::vector<OpSeconds> seconds_by_op(const Trace& trace, int job) {
  const Counted counted(trace, job);
  const std::vector<Role>& roles = trace.run.jobs[job].phases.back().schedule->roles;
  std::vector<OpSeconds> all;
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    if (who.job != job) continue;
    const Role& role = roles[who.role];
    const Span span = counted.span();
    const double weight = span.share * static_cast<double>(who.ranks.size()) / role.size();
    std::vector<std::size_t> number;  // index in `all` by op; not known yet: kNoRow
    const auto [first, last] = rows_of_class(trace, static_cast<int>(c));
    for (std::size_t row = first; row < last; ++row) {
      const Op& op = trace.op_of(row);
      if (!is_transfer(op) && op.kind != OpKind::compute && op.kind != OpKind::host) continue;
      const double part = counted.part_of(row);
      if (part <= 0) continue;
      const auto at = static_cast<std::size_t>(trace.spans.op[row]);
      if (at >= number.size()) number.resize(at + 1, kNoRow);
      if (number[at] == kNoRow) {
        const OpSeconds kind = kind_of(op, role, who.role == kWorkers);
        const auto found = std::find(all.begin(), all.end(), kind);
        number[at] = static_cast<std::size_t>(found - all.begin());
        if (found == all.end()) all.push_back(kind);
      }
      all[number[at]].seconds += weight * part * (trace.spans.end_s[row] - trace.spans.begin_s[row]);
      all[number[at]].count += weight * part;
    }
  }
  return all;
}

Overlap overlap(const Trace& trace, int job) {
  const Counted counted(trace, job);
  const Role& workers = trace.run.jobs[job].phases.back().schedule->roles.front();
  Overlap mean;
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    if (who.job != job || who.role != 0) continue;
    const Span span = counted.span();
    std::vector<Interval> computing, sending;
    const auto [first, last] = rows_of_class(trace, static_cast<int>(c));
    for (std::size_t row = first; row < last; ++row) {
      const Op& op = trace.op_of(row);
      if (!is_transfer(op) && op.kind != OpKind::compute) continue;
      // A step's transfers can extend beyond its end: only the part within its time counts.
      const double begin = std::max(trace.spans.begin_s[row], span.window.begin_s),
                   end = std::min(trace.spans.end_s[row], span.window.end_s);
      if (end > begin) (is_transfer(op) ? sending : computing).emplace_back(begin, end);
    }
    const std::vector<Interval> sent = united(std::move(sending)), computed = united(std::move(computing));
    const double weight = span.share * static_cast<double>(who.ranks.size()) / workers.size();
    mean.communication_s += weight * length(sent);
    mean.hidden_s += weight * common_length(sent, computed);
  }
  return mean;
}

}  // namespace rehearse
