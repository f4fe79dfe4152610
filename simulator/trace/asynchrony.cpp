#include "simulator/trace/asynchrony.hpp"

#include <algorithm>

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

const Schedule& schedule_of_job(const Trace& trace, int job) {
  return *trace.run.jobs[job].phases.back().schedule;
}

int class_of_rank(const Trace& trace, int job, int role, int rank) {
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    if (who.job == job && who.role == role && std::count(who.ranks.begin(), who.ranks.end(), rank) > 0)
      return static_cast<int>(c);
  }
  return -1;
}

int weights_of(const Asynchrony& how, int worker) {
  return how.weights_of.empty() ? 0 : how.weights_of[static_cast<std::size_t>(worker)];
}

// Returns how many rounds a worker has done at a time, of which the last counts by the part of its time that
// has passed.
double rounds_until(const std::vector<double>& applied_s, double time_s) {
  const auto next = std::upper_bound(applied_s.begin(), applied_s.end(), time_s);
  const auto whole = static_cast<double>(next - applied_s.begin());
  if (next == applied_s.end()) return whole;
  const double begin_s = next == applied_s.begin() ? 0 : *(next - 1);
  return whole + (time_s - begin_s) / (*next - begin_s);
}

// Measures the rounds of one worker between two points in time.
void measure(AsynchronyFigures::Worker& worker, const std::vector<double>& applied_s, double begin_s,
             double end_s) {
  const auto first = std::lower_bound(applied_s.begin(), applied_s.end(), begin_s);
  const auto last = std::upper_bound(first, applied_s.end(), end_s);
  worker.rounds = static_cast<int>(last - first);
  worker.rounds_per_s =
      (rounds_until(applied_s, end_s) - rounds_until(applied_s, begin_s)) / (end_s - begin_s);
}

}  // namespace

double AsynchronyFigures::mean_staleness() const {
  double sum = 0, count = 0;
  for (const auto& [updates, gradients] : staleness) {
    sum += static_cast<double>(updates) * static_cast<double>(gradients);
    count += static_cast<double>(gradients);
  }
  return count > 0 ? sum / count : 0;
}

std::vector<AppliedPush> applied_pushes(const Trace& trace, int job) {
  const Asynchrony& how = *schedule_of_job(trace, job).asynchrony;
  const int server = class_of_rank(trace, job, how.server_role, 0);
  std::map<int, int> applies, sends;  // op -> worker
  for (std::size_t w = 0; w < how.applies.size(); ++w) {
    applies[how.applies[w]] = static_cast<int>(w);
    sends[how.sends[w]] = static_cast<int>(w);
  }
  std::vector<AppliedPush> pushes;
  std::map<std::pair<int, int>, double> sent_s;  // by worker and round
  const auto [first, last] = rows_of_class(trace, server);
  for (std::size_t row = first; row < last; ++row) {
    const int op = trace.spans.op[row], round = trace.spans.iteration[row];
    if (const auto it = applies.find(op); it != applies.end())
      pushes.push_back({it->second, round, 0, trace.spans.end_s[row]});
    else if (const auto send = sends.find(op); send != sends.end())
      sent_s[{send->second, round}] = trace.spans.ready_s[row];
  }
  for (AppliedPush& push : pushes)
    if (push.round > 0) push.read_s = sent_s.at({push.worker, push.round - 1});
  std::stable_sort(pushes.begin(), pushes.end(),
                   [](const AppliedPush& a, const AppliedPush& b) { return a.applied_s < b.applied_s; });
  return pushes;
}

AsynchronyFigures asynchrony_figures(const Trace& trace, int job) {
  const Schedule& schedule = schedule_of_job(trace, job);
  const Asynchrony& how = *schedule.asynchrony;
  const std::vector<AppliedPush> pushes = applied_pushes(trace, job);
  const auto workers = how.applies.size();
  std::vector<std::vector<double>> applied_s(workers);
  std::map<int, std::vector<double>> all_s;  // by weights
  for (const AppliedPush& push : pushes) {
    applied_s[push.worker].push_back(push.applied_s);
    all_s[weights_of(how, push.worker)].push_back(push.applied_s);
  }
  AsynchronyFigures figures;
  figures.window_end_s = trace.end_s;
  for (const std::vector<double>& own_s : applied_s) {
    if (own_s.empty()) continue;
    figures.window_end_s = std::min(figures.window_end_s, own_s.back());
    const auto warm = static_cast<std::size_t>(how.warmup_rounds);
    figures.window_begin_s = std::max(figures.window_begin_s, own_s[std::min(warm, own_s.size() - 1)]);
  }
  // This happens if a worker is so slow that the others reach their limit of rounds before it ends its
  // warm-up.
  if (!(figures.window_begin_s < figures.window_end_s)) figures.window_begin_s = figures.window_end_s / 2;

  const double samples_per_round = schedule.samples / static_cast<double>(workers);
  for (std::size_t w = 0; w < workers; ++w) {
    AsynchronyFigures::Worker worker;
    worker.rank = static_cast<int>(w);
    measure(worker, applied_s[w], figures.window_begin_s, figures.window_end_s);
    worker.samples_per_s = worker.rounds_per_s * samples_per_round;
    figures.samples_per_s += worker.samples_per_s;
    figures.workers.push_back(worker);
  }

  std::map<int, std::ptrdiff_t> seen;  // by weights: gradients applied before this one
  for (const AppliedPush& push : pushes) {
    const std::vector<double>& its_s = all_s[weights_of(how, push.worker)];
    const std::ptrdiff_t before = seen[weights_of(how, push.worker)]++;
    if (push.round == 0 || push.applied_s < figures.window_begin_s || push.applied_s > figures.window_end_s)
      continue;
    const auto read = std::upper_bound(its_s.begin(), its_s.end(), push.read_s) - its_s.begin();
    ++figures.staleness[static_cast<int>(before - read)];
  }
  return figures;
}

}  // namespace rehearse
