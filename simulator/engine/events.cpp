// Applies events to the cluster and fails the jobs that they hit. All ranks of a job fail together, as in
// NCCL; other jobs continue.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/simulation.hpp"

namespace rehearse {

void Simulation::start_events() {
  std::vector<Event> later;
  for (const Event& e : run_.events) {
    if (e.kind == Event::Kind::device_speed)
      speed_changes_[e.endpoint].emplace_back(e.time_s, e.factor);
    else
      later.push_back(e);
  }
  for (auto& [endpoint, changes] : speed_changes_) std::stable_sort(changes.begin(), changes.end());
  std::stable_sort(later.begin(), later.end(),
                   [](const Event& a, const Event& b) { return a.time_s < b.time_s; });
  if (later.empty()) return;
  sg::start_actor(platform_.engine(), "events", platform_.home(), [this, later] {
    sg::s4u::Actor::self()->daemonize();
    for (const Event& e : later) {
      sg::sleep_until(e.time_s);
      if (e.kind == Event::Kind::device_death) {
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
          std::vector<Stream*> hit;
          for (Stream& s : streams_) {
            const Layout::Class& c = layout_.classes[s.rank_class];
            if (c.job == static_cast<int>(j) && c.endpoint == e.endpoint) hit.push_back(&s);
          }
          if (!hit.empty())
            fail_job(static_cast<int>(j), fmt::format("{} died", cluster_.endpoint_name(e.endpoint)), hit);
        }
        continue;
      }
      const int link_class = layout_.class_of_link(e.link);
      if (link_class < 0) continue;  // no transfer uses it
      if (e.kind == Event::Kind::link_capacity)
        platform_.scale_link(link_class, e.factor);
      else
        platform_.kill_link(link_class);
    }
  });
}

void Simulation::fail_job(int job, const std::string& reason, const std::vector<Stream*>& failed) {
  JobState& state = jobs_[job];
  if (!state.failed) {
    state.failed = true;
    state.failed_at_s = now();
    state.failures.emplace_back(now(), reason);
    std::vector<sg::s4u::ActorPtr> victims;
    for (Stream& s : streams_) {
      if (layout_.classes[s.rank_class].job != job || s.ended) continue;
      const bool culprit = std::find(failed.begin(), failed.end(), &s) != failed.end();
      if (s.in_op) {
        if (s.begin_s > now()) s.begin_s = now();
        record(s, now(), culprit ? Status::failed : Status::cancelled);
      }
      s.in_op = false;
      s.ended = true;
      victims.push_back(s.actor);
    }
    for (sg::s4u::Actor* helper : state.helpers) victims.emplace_back(helper);
    state.helpers.clear();
    sg::s4u::Actor* self = sg::s4u::Actor::self();
    bool own = false;
    for (const sg::s4u::ActorPtr& victim : victims) {
      if (victim.get() == self)
        own = true;
      else
        victim->kill();
    }
    if (own) sg::s4u::this_actor::exit();
  }
}

// Streams run ahead of SimGrid's clock while they only compute. This removes what a job did after its
// failure.
void Simulation::finish_trace() {
  for (Stream& stream : streams_) {
    const JobState& job = jobs_[layout_.classes[stream.rank_class].job];
    if (!job.failed) continue;
    Spans& s = stream.spans;
    Spans kept;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (s.ready_s[i] >= job.failed_at_s && s.end_s[i] > job.failed_at_s) continue;
      const bool cut = s.end_s[i] > job.failed_at_s;
      kept.rank_class.push_back(s.rank_class[i]);
      kept.phase.push_back(s.phase[i]);
      kept.step.push_back(s.step[i]);
      kept.op.push_back(s.op[i]);
      kept.iteration.push_back(s.iteration[i]);
      kept.ready_s.push_back(s.ready_s[i]);
      kept.begin_s.push_back(s.begin_s[i]);
      kept.end_s.push_back(cut ? job.failed_at_s : s.end_s[i]);
      kept.latency_s.push_back(s.latency_s[i]);
      if (!s.slowed_s.empty()) kept.slowed_s.push_back(s.slowed_s[i]);
      kept.status.push_back(cut ? Status::cancelled : s.status[i]);
      kept.sender.push_back(s.sender[i]);
    }
    s = std::move(kept);
  }
}

}  // namespace rehearse
