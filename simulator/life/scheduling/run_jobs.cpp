#include "simulator/life/scheduling/run_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "models/text/error.hpp"
#include "simulator/engine/timers.hpp"

namespace rehearse {
namespace {

// A job between its submission and its end: what the policy sees, and what the run needs.
struct RunningJob {
  ActiveJob seen;
  JobPlacement placement;
  Timers::Handle end;
  double since_s = 0;  // of the present placement
  double known_s = 0;  // the time up to which `seen` counts
  double costs_s = 0;  // of starting, that have not passed yet
  bool ended = false;
};

class JobsOnCluster {
public:
  JobsOnCluster(const JobsRun& run, const SchedulingPolicy& policy, Timers& timers, JobsResult& result)
      : run_(run),
        jobs_(*run.jobs),
        policy_(policy),
        timers_(timers),
        result_(result),
        free_(run.nodes, run.devices_per_node, run.nodes_per_leaf),
        interval_s_(run.interval_s > 0 ? run.interval_s : policy.round_s) {
    result_.outcomes.resize(jobs_.size());
  }

  void begin() { await_submission(); }

private:
  // One timer waits for the next submission, so that jobs of the future take no room.
  void await_submission() {
    if (next_ < jobs_.size()) timers_.start(jobs_[next_].submit_s, [this] { submit(); });
  }

  void submit() {
    for (; next_ < jobs_.size() && jobs_[next_].submit_s <= timers_.now_s(); ++next_) {
      const ListedJob& job = jobs_[next_];
      auto active = std::make_unique<RunningJob>();
      active->seen.number = static_cast<int>(next_);
      active->seen.submit_s = job.submit_s;
      active->seen.priority = job.priority;
      active->seen.devices = job.devices;
      active->seen.duration_s = active->seen.remaining_s = job.duration_s;
      views_.push_back(&active->seen);
      active_.push_back(std::move(active));
    }
    result_.most_active = std::max(result_.most_active, static_cast<std::int64_t>(active_.size()));
    await_submission();
    ask_soon();
  }

  // Asks the policy after all that happens at this time, or with rounds at the next multiple of their time.
  void ask_soon() {
    double when_s = timers_.now_s();
    if (interval_s_ > 0) when_s = std::ceil(when_s / interval_s_ * (1 - 1e-15)) * interval_s_;
    ask_at(std::max(when_s, timers_.now_s()));
  }

  void ask_at(double when_s) {
    if (asks_at_s_ <= when_s) return;
    timers_.stop(asks_);
    asks_at_s_ = when_s;
    asks_ = timers_.start(when_s, [this] {
      asks_at_s_ = kNever_s;
      ask();
    });
  }

  void ask() {
    end_due_jobs();
    forget_ended();
    if (active_.empty()) return;
    for (const auto& job : active_) count_up_to_now(*job);
    const ClusterState state{timers_.now_s(), run_.nodes * run_.devices_per_node, views_};
    const Allocation runs = policy_.allocate(state);
    ++result_.decisions;
    // First those that lose their devices, then those that get them.
    for (std::size_t j = 0; j < active_.size(); ++j)
      if (active_[j]->seen.running && !runs[j]) preempt(*active_[j]);
    for (std::size_t j = 0; j < active_.size(); ++j)
      if (!active_[j]->seen.running && runs[j]) start(*active_[j]);
    if (interval_s_ > 0) {
      ask_at(state.now_s + interval_s_);
    } else if (policy_.ask_again_s != nullptr) {
      const double again_s = policy_.ask_again_s(state, runs);
      if (again_s < kNever_s) ask_at(again_s);
    }
    if (free_.free() == state.devices && next_ == jobs_.size() && asks_at_s_ == kNever_s)
      throw RunError(fmt::format("the policy {} lets {} jobs wait for ever", policy_.name, active_.size()));
  }

  void forget_ended() {
    if (ended_ == 0) return;
    ended_ = 0;
    active_.erase(std::remove_if(active_.begin(), active_.end(), [](const auto& job) { return job->ended; }),
                  active_.end());
    views_.clear();
    for (const auto& job : active_) views_.push_back(&job->seen);
  }

  void count_up_to_now(RunningJob& job) {
    const double now_s = timers_.now_s();
    if (job.seen.running) {
      const double passed_s = now_s - job.known_s, cost_s = std::min(job.costs_s, passed_s);
      job.costs_s -= cost_s;
      job.seen.held_s += passed_s;
      job.seen.remaining_s = std::max(0.0, job.seen.remaining_s - (passed_s - cost_s));
    }
    job.known_s = now_s;
  }

  void start(RunningJob& job) {
    if (job.seen.devices > free_.free())
      throw RunError(fmt::format("the policy {} gives away more devices than there are", policy_.name));
    JobOutcome& outcome = result_.outcomes[static_cast<std::size_t>(job.seen.number)];
    const double now_s = timers_.now_s();
    job.costs_s = run_.start_cost_s + (outcome.preemptions > 0 ? run_.preemption_cost_s : 0);
    job.placement = free_.take(job.seen.devices, run_.placement);
    job.seen.running = true;
    job.seen.first_start_s = std::min(job.seen.first_start_s, now_s);
    job.since_s = now_s;
    job.seen.end_s = now_s + job.costs_s + job.seen.remaining_s;
    outcome.start_s = job.seen.first_start_s;
    outcome.nodes = static_cast<int>(job.placement.size());
    outcome.leaves = free_.leaves_of(job.placement);
    job.end = timers_.start(job.seen.end_s, [this, &job] { end(job); });
  }

  void leave_devices(RunningJob& job) {
    if (run_.record_spans)
      for (const NodeShare& share : job.placement)
        result_.spans.push_back({job.since_s, timers_.now_s(), job.seen.number, share.node, share.devices});
    free_.give_back(job.placement);
    job.placement.clear();
    job.seen.running = false;
    job.seen.end_s = kNever_s;
  }

  void preempt(RunningJob& job) {
    timers_.stop(job.end);
    leave_devices(job);
    ++result_.outcomes[static_cast<std::size_t>(job.seen.number)].preemptions;
  }

  void end(RunningJob& job) {
    count_end(job);
    ask_soon();
  }

  // Ends that are due now may be called after a decision that is, too (Timers::now_s()): nobody would gain
  // from preempting a job that has done all its work.
  void end_due_jobs() {
    for (const auto& job : active_)
      if (job->seen.running && job->seen.end_s <= timers_.now_s() + Timers::kPrecision_s) {
        timers_.stop(job->end);
        count_end(*job);
      }
  }

  void count_end(RunningJob& job) {
    count_up_to_now(job);
    JobOutcome& outcome = result_.outcomes[static_cast<std::size_t>(job.seen.number)];
    outcome.end_s = timers_.now_s();
    outcome.held_s = job.seen.held_s;
    leave_devices(job);
    job.ended = true;
    ++ended_;
  }

  const JobsRun& run_;
  const std::vector<ListedJob>& jobs_;
  const SchedulingPolicy& policy_;
  Timers& timers_;
  JobsResult& result_;
  FreeDevices free_;
  const double interval_s_;
  std::vector<std::unique_ptr<RunningJob>> active_;  // in the order of submission
  std::vector<const ActiveJob*> views_;              // of the same jobs
  std::size_t next_ = 0, ended_ = 0;
  Timers::Handle asks_;
  double asks_at_s_ = kNever_s;
};

}  // namespace

JobsResult run_jobs(const JobsRun& run, const SchedulingPolicy& policy) {
  JobsResult result;
  std::unique_ptr<JobsOnCluster> cluster;
  run_timers([&](Timers& timers) {
    cluster = std::make_unique<JobsOnCluster>(run, policy, timers, result);
    cluster->begin();
  });
  return result;
}

}  // namespace rehearse
