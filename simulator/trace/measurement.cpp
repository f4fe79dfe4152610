#include "simulator/trace/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/text/error.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void add_spread(StepTimes& times) {
  std::vector<double> sorted = times.seconds;
  std::sort(sorted.begin(), sorted.end());
  times.least_s = sorted.front();
  times.lower_quartile_s = quantile(sorted, 0.25);
  times.median_s = sorted[(sorted.size() - 1) / 2];
  times.upper_quartile_s = quantile(sorted, 0.75);
  times.most_s = sorted.back();
}

StepTimes asynchronous_times(const Trace& trace, int job) {
  const AsynchronyFigures figures = asynchrony_figures(trace, job);
  const std::size_t workers = figures.workers.size();
  std::vector<double> applied_s;
  for (const AppliedPush& push : applied_pushes(trace, job))
    if (push.applied_s >= figures.window_begin_s && push.applied_s <= figures.window_end_s)
      applied_s.push_back(push.applied_s);
  StepTimes times;
  for (std::size_t i = workers; i < applied_s.size(); i += workers)
    times.seconds.push_back(applied_s[i] - applied_s[i - workers]);
  if (times.seconds.empty())
    throw RunError("no step is measured: the workers have too few rounds in which all of them run");
  add_spread(times);
  return times;
}

}  // namespace

StepTimes step_times(const Trace& trace, int job, int warmup_steps) {
  const Schedule& schedule = *trace.run.jobs[job].phases.back().schedule;
  if (schedule.asynchrony) return asynchronous_times(trace, job);
  const int last = last_step_number(trace, job);
  if (last < warmup_steps)
    throw RunError(
        fmt::format("no step is measured: the run has {} and a warm-up of {}", last + 1, warmup_steps));
  std::vector<double> end_s(static_cast<std::size_t>(last) + 1, 0.0);
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    if (trace.classes[trace.spans.rank_class[row]].job != job) continue;
    double& end = end_s[trace.spans.step[row]];
    end = std::max(end, trace.spans.end_s[row]);
  }
  for (std::size_t step = 1; step < end_s.size(); ++step)
    end_s[step] = std::max(end_s[step], end_s[step - 1]);

  StepTimes times;
  times.first_step = warmup_steps;
  for (int step = warmup_steps; step <= last; ++step)
    times.seconds.push_back((end_s[step] - (step > 0 ? end_s[step - 1] : 0)) / schedule.optimizer_steps);
  add_spread(times);
  const auto median = std::find(times.seconds.begin(), times.seconds.end(), times.median_s);
  times.median_step = warmup_steps + static_cast<int>(median - times.seconds.begin());
  return times;
}

Trace up_to_step(const Trace& trace, int step) {
  Trace cut = trace;
  const Spans& all = trace.spans;
  Spans& kept = cut.spans = {};
  cut.kernels.clear();
  cut.end_s = 0;
  int last = step;
  for (std::size_t row = 0; row < all.size(); ++row) {
    last = std::max(last, all.step[row]);
    if (all.step[row] > step) continue;
    kept.rank_class.push_back(all.rank_class[row]);
    kept.phase.push_back(all.phase[row]);
    kept.step.push_back(all.step[row]);
    kept.op.push_back(all.op[row]);
    kept.iteration.push_back(all.iteration[row]);
    kept.ready_s.push_back(all.ready_s[row]);
    kept.begin_s.push_back(all.begin_s[row]);
    kept.end_s.push_back(all.end_s[row]);
    if (!all.slowed_s.empty()) kept.slowed_s.push_back(all.slowed_s[row]);
    if (!all.latency_s.empty()) kept.latency_s.push_back(all.latency_s[row]);
    kept.status.push_back(all.status[row]);
    kept.sender.push_back(all.sender[row]);
    cut.end_s = std::max(cut.end_s, all.end_s[row]);
  }
  const double share = (step + 1.0) / (last + 1.0);
  cut.bytes_total *= share;
  for (LinkUse& use : cut.link_use) use.bytes *= share;
  return cut;
}

MeasuredFigures evaluate_measured(const Trace& trace, const Scenario& scenario, const Plan& plan,
                                  int warmup_steps) {
  MeasuredFigures figures;
  const bool failed = !trace.job_failed.empty() && trace.job_failed.front();
  if (!failed) figures.times = step_times(trace, 0, warmup_steps);
  const bool asynchronous = figures.times.median_step < 0;
  figures.step = asynchronous ? trace : up_to_step(trace, figures.times.median_step);
  figures.metrics = evaluate(figures.step, scenario, plan);  // throws if the job failed
  if (!std::isfinite(figures.metrics.step_time_s))
    throw RunError("no step is measured: no worker has a complete round after the warm-up");
  if (asynchronous)
    figures.times.median_s = figures.metrics.step_time_s;
  else
    figures.path = critical_path(figures.step, 0);
  return figures;
}

}  // namespace rehearse
