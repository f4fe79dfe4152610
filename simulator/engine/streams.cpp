// Runs one stream of one rank class: its ops in order, each after its dependencies.
#include <algorithm>
#include <limits>

#include "simulator/costs/host.hpp"
#include "simulator/engine/progress.hpp"
#include "simulator/engine/simulation.hpp"

namespace rehearse {

const ClassProgram& Simulation::does(const Stream& stream) const {
  return layout_.classes[stream.rank_class].phases[stream.phase];
}

const Program& Simulation::program(const Stream& stream) const {
  const int job = layout_.classes[stream.rank_class].job;
  return run_.jobs[job].phases[stream.phase].schedule->programs[does(stream).program];
}

const ProgramIndex& Simulation::index(const Stream& stream) const {
  return layout_.index[layout_.classes[stream.rank_class].job][stream.phase][does(stream).program];
}

int Simulation::slot(const Stream& stream, int op, int part) const {
  const int job = layout_.classes[stream.rank_class].job;
  return layout_.communication[job][stream.phase]->slot(does(stream).program, op, part);
}

double Simulation::op_share(const Stream& stream, const Op& op) const {
  return op.share.values.empty() ? op.share.base : amount_here(stream, op.share);
}

double Simulation::amount_here(const Stream& stream, const Quantity& amount) const {
  const Layout::Class& own = layout_.classes[stream.rank_class];
  return amount.at(run_.jobs[own.job].phases[stream.phase].schedule->roles[own.role], own.ranks.front());
}

void Simulation::start_streams() {
  classes_.resize(layout_.classes.size());
  for (std::size_t c = 0; c < layout_.classes.size(); ++c) {
    const Layout::Class& rank_class = layout_.classes[c];
    const Job& job = run_.jobs[rank_class.job];
    ClassState& state = classes_[c];
    std::size_t streams = 0;
    for (std::size_t ph = 0; ph < job.phases.size(); ++ph) {
      state.streams_ended.push_back(0);
      const int number = rank_class.phases[ph].program;
      if (number < 0) {
        state.done.emplace_back();
        state.awaited.emplace_back();
        state.ended_s.emplace_back();
        state.turns.emplace_back();
        continue;
      }
      const Program& p = job.phases[ph].schedule->programs[number];
      streams = std::max(streams, p.streams.size());
      state.done.emplace_back(p.ops.size(), 0);
      state.awaited.emplace_back(p.ops.size(), 0);
      state.ended_s.emplace_back(runs_ahead_ ? p.ops.size() : 0);
      state.turns.emplace_back();
      for (const Turn& turn : p.turns) {
        state.turns.back().push_back(sg::s4u::Semaphore::create(static_cast<unsigned>(turn.at_once)));
      }
      for (const Op& op : p.ops)
        for (const Dependency& d : op.after)
          if (p.ops[d.op].stream != op.stream) state.awaited.back()[d.op] = 1;
    }
    for (std::size_t s = 0; s < streams; ++s) {
      state.streams.push_back(static_cast<int>(streams_.size()));
      Stream& stream = streams_.emplace_back();
      stream.rank_class = static_cast<int>(c);
      stream.number = static_cast<int>(s);
      for (std::size_t ph = 0; ph < job.phases.size(); ++ph) {
        stream.phase = static_cast<int>(ph);
        if (does(stream).program < 0 || s >= program(stream).streams.size()) continue;
        for (int op : index(stream).stream_ops[s]) stream.endless |= index(stream).per_step[op] == 0;
      }
      stream.phase = 0;
    }
  }
  for (Stream& stream : streams_) {
    // Columns that grow by themselves have room for up to twice their spans.
    constexpr std::int64_t kMostReserved = 65536;
    stream.spans.reserve(static_cast<std::size_t>(std::min(ops_of(stream), kMostReserved)));
    stream.actor = sg::start_actor(platform_.engine(), "stream", platform_.home(), [this, &stream] {
      if (stream.endless) sg::s4u::Actor::self()->daemonize();
      run_stream(stream);
    });
  }
}

std::int64_t Simulation::ops_of(const Stream& stream) const {
  std::int64_t ops = 0;
  const Job& job = run_.jobs[layout_.classes[stream.rank_class].job];
  Stream at = {};
  at.rank_class = stream.rank_class;
  for (std::size_t ph = 0; ph < job.phases.size(); ++ph) {
    at.phase = static_cast<int>(ph);
    if (does(at).program < 0 || stream.number >= static_cast<int>(program(at).streams.size())) continue;
    std::int64_t per_step = 0;
    for (int op : index(at).stream_ops[stream.number])
      if (program(at).ops[op].kind != OpKind::repeat_end) per_step += index(at).per_step[op];
    ops += per_step * (job.phases[ph].repeats + job.phases[ph].beyond);
  }
  return ops;
}

std::int64_t Simulation::ops_to_run() const {
  std::int64_t ops = 0;
  for (const Stream& stream : streams_)
    if (!stream.endless) ops += ops_of(stream);
  return ops;
}

void Simulation::run_stream(Stream& stream) {
  const Layout::Class& who = layout_.classes[stream.rank_class];
  const Job& job = run_.jobs[who.job];
  if (!job.start_s.empty())
    stream.local_time_s = job.start_s[job.phases.front().schedule->first_rank(who.role) + who.ranks.front()];
  // First step of the phase. Steps that did not begin count, too, so that a step has the same number on all
  // ranks.
  int first_step = 0;
  for (std::size_t ph = 0; ph < job.phases.size(); ++ph) {
    stream.phase = static_cast<int>(ph);
    if (does(stream).program >= 0 && stream.number < static_cast<int>(program(stream).streams.size())) {
      stream.cursor = StreamCursor(program(stream), index(stream), stream.number, first_step);
      int rounds = 0;
      for (; rounds < job.phases[ph].repeats + job.phases[ph].beyond && step_may_begin(stream); ++rounds)
        run_step(stream);
      const std::optional<Asynchrony>& asynchrony = job.phases[ph].schedule->asynchrony;
      if (asynchrony && who.role == 0 && ph + 1 == job.phases.size()) {
        // The rank has done its share and may be stopped at any time from now on.
        catch_up(stream);
        stream.endless = true;
        sg::s4u::Actor::self()->daemonize();
        for (; rounds < asynchrony->most_rounds; ++rounds) run_step(stream);
      }
    }
    end_phase(stream);
    first_step += job.phases[ph].repeats;
  }
  stream.ended = true;
}

// Returns whether the next step may begin, which is the case until the phase's time is over. The first stream
// to ask decides for all.
bool Simulation::step_may_begin(Stream& stream) {
  const int job = layout_.classes[stream.rank_class].job;
  const double until = run_.jobs[job].phases[stream.phase].until_s;
  if (until == std::numeric_limits<double>::infinity()) return true;
  catch_up(stream);
  return jobs_[job]
      .step_begins.try_emplace({stream.phase, stream.cursor.step()}, now() < until)
      .first->second;
}

// The phases of a rank follow one another: none of its streams begins the next phase before all have ended
// this one.
void Simulation::end_phase(Stream& stream) {
  catch_up(stream);
  ClassState& state = classes_[stream.rank_class];
  const int all = static_cast<int>(state.streams.size());
  if (++state.streams_ended[stream.phase] == all) {
    for (int s : state.streams) streams_[s].bell.ring();
    return;
  }
  while (state.streams_ended[stream.phase] < all) stream.bell.wait();
  stream.local_time_s = now();
}

void Simulation::run_step(Stream& stream) {
  // The process waits for the device to read the loss and to check whether gradients overflowed.
  stream.host_s = std::max(stream.host_s, stream.local_time_s) + options_.launches.step_s;
  for (; !stream.cursor.at_end(); stream.cursor.advance()) switch (stream.cursor.current().kind) {
      case OpKind::repeat_begin:
        wait_for_dependencies(stream);
        end_op(stream, stream.local_time_s);
        break;
      case OpKind::repeat_end:
        ++classes_[stream.rank_class].done[stream.phase][stream.cursor.op()];
        break;
      default:
        run_op(stream);
    }
  stream.cursor.next_step();
}

void Simulation::run_op(Stream& stream) {
  const Op& op = stream.cursor.current();
  const int number = stream.cursor.op();
  wait_for_dependencies(stream);
  if (op.kind == OpKind::collective || op.kind == OpKind::exchange)
    stream.local_time_s = std::max(stream.local_time_s, issue(stream));
  stream.ready_s = stream.begin_s = stream.local_time_s;
  stream.latency_s = stream.slowed_s = 0;
  stream.status = Status::done;
  stream.received_from = -1;
  stream.in_op = true;
  double end = stream.ready_s;
  switch (op.kind) {
    case OpKind::compute:
      compute(stream, op);
      end = stream.local_time_s;
      break;
    case OpKind::host:
      end = stream.ready_s + host_time_s(op, cluster_.node()) +
            op_share(stream, op) *
                (op.purpose == Purpose::input ? op.seconds / options_.input_speed : op.seconds);
      break;
    case OpKind::collective:
      if (collective_of_one_class(stream, number, end)) break;
      [[fallthrough]];
    case OpKind::exchange:
      if (!begins_ahead(stream, number)) catch_up(stream);
      stream.ready_s = stream.begin_s = stream.carried_s = stream.local_time_s;
      if (op.kind == OpKind::exchange) exchange(stream, number);
      if (op.kind == OpKind::collective) collective(stream, number);
      end = std::max(stream.carried_s, now());
      break;
    case OpKind::signal:
    case OpKind::wait_until:
      catch_up(stream);
      stream.ready_s = stream.begin_s = stream.local_time_s;
      if (op.kind == OpKind::signal) signal(stream, op);
      if (op.kind == OpKind::wait_until) wait_for_counter(stream);
      end = std::max(stream.local_time_s, now());
      break;
    case OpKind::repeat_begin:
    case OpKind::repeat_end:
      break;
  }
  if (op.kind == OpKind::exchange && options_.launches.waits_for_messages)
    stream.host_s = std::max(stream.host_s, end);
  if (op.arithmetic) {
    stream.local_time_s = end;
    catch_up(stream);
    const Layout::Class& c = layout_.classes[stream.rank_class];
    op.arithmetic({c.job, c.role, c.ranks.front(), stream.cursor.step(), stream.received_from, end});
  }
  end_op(stream, end);
}

void Simulation::end_op(Stream& stream, double end_s) {
  ClassState& state = classes_[stream.rank_class];
  const int number = stream.cursor.op();
  stream.local_time_s = end_s;
  const bool awaited = state.awaited[stream.phase][number] != 0;
  if (awaited && runs_ahead_)
    state.ended_s[stream.phase][number].push_back(end_s);
  else if (awaited)
    catch_up(stream);
  if (stream.in_op) record(stream, end_s, stream.status);
  stream.in_op = false;
  ++events_;
  if (!stream.endless) advance_stage();
  const long done = ++state.done[stream.phase][number];
  if (!awaited) return;
  for (int s : state.streams) {
    Stream& other = streams_[s];
    if (other.phase == stream.phase && other.awaited_op == number && done >= other.awaited_count)
      other.bell.ring();
  }
}

void Simulation::wait_for_dependencies(Stream& stream) {
  const std::vector<long>& done = classes_[stream.rank_class].done[stream.phase];
  for (const Dependency& d : stream.cursor.current().after) {
    const long required = stream.cursor.required(d, done);
    if (done[d.op] < required) {
      if (!runs_ahead_) catch_up(stream);  // the op ends in time, too
      while (done[d.op] < required) {
        stream.awaited_op = d.op;
        stream.awaited_count = required;
        stream.bell.wait();
      }
      stream.awaited_op = -1;
      if (!runs_ahead_) stream.local_time_s = now();
    }
    if (!runs_ahead_ || required <= 0) continue;
    const std::vector<double>& ended_s = classes_[stream.rank_class].ended_s[stream.phase][d.op];
    if (!ended_s.empty())  // else the op is on the same stream
      stream.local_time_s = std::max(stream.local_time_s, ended_s[static_cast<std::size_t>(required - 1)]);
  }
}

bool Simulation::begins_ahead(const Stream& stream, int number) const {
  if (!runs_ahead_) return false;
  const Op& op = program(stream).ops[number];
  const std::size_t parts = op.kind == OpKind::collective ? 1 : op.messages.size();
  for (std::size_t part = 0; part < parts; ++part)
    for (int t : does(stream).transfers[slot(stream, number, static_cast<int>(part))])
      if (in_time_[t]) return false;
  return true;
}

void Simulation::catch_up(Stream& stream) {
  sg::sleep_until(stream.local_time_s);
  stream.local_time_s = std::max(stream.local_time_s, now());
}

sg::s4u::SemaphorePtr Simulation::turn_of(const Stream& stream, const Op& op) const {
  return op.turn < 0 ? nullptr : classes_[stream.rank_class].turns[stream.phase][op.turn];
}

void Simulation::compute(Stream& stream, const Op& op) {
  const double seconds = op_share(stream, op) * does(stream).seconds[op.work] * jitter_of(stream);
  const sg::s4u::SemaphorePtr turn = turn_of(stream, op);
  if (!turn) {
    if (options_.launches.blocking && is_issued(stream)) {
      // Each kernel is launched when the previous one has ended, so launches and kernels take turns.
      stream.local_time_s = issue(stream);
      stream.latency_s = stream.local_time_s - stream.ready_s;
      stream.local_time_s = compute_end(stream, seconds);
      return;
    }
    // The first kernel begins once the process has issued the previous op, and the last one ends after it has
    // been issued.
    stream.local_time_s = std::max(stream.local_time_s, is_issued(stream) ? stream.host_s : 0);
    stream.latency_s = stream.local_time_s - stream.ready_s;
    const double end_s = runs_beside(stream, stream.cursor.op()) ? compute_beside(stream, op.work, seconds)
                                                                 : compute_end(stream, seconds);
    stream.local_time_s = std::max(end_s, issue(stream));
    stream.latency_s += stream.local_time_s - end_s;
    return;
  }
  catch_up(stream);
  turn->acquire();
  stream.begin_s = stream.local_time_s = now();
  stream.local_time_s = compute_end(stream, seconds);
  catch_up(stream);
  turn->release();
}

double Simulation::jitter_of(const Stream& stream) const {
  const Layout::Class& who = layout_.classes[stream.rank_class];
  if (!options_.jitter.any() || who.role != kWorkers) return 1;
  return jitter_factor(options_.jitter, who.ranks.front(), stream.cursor.step(), stream.cursor.op());
}

bool Simulation::is_issued(const Stream& stream) const {
  return stream.number == 0 && !does(stream).launch_s.empty();
}

double Simulation::issue(Stream& stream) {
  if (!is_issued(stream)) return 0;
  const auto op = static_cast<std::size_t>(stream.cursor.op());
  const bool waits = options_.launches.blocking || (!does(stream).waits.empty() && does(stream).waits[op]);
  if (waits) stream.host_s = std::max(stream.host_s, stream.local_time_s);
  stream.host_s += does(stream).launch_s[op];
  classes_[stream.rank_class].issued_s += does(stream).launch_s[op];
  return stream.host_s;
}

// Returns when a computation ends at a speed that events may change meanwhile; their times are known from the
// start.
double Simulation::compute_end(const Stream& stream, double seconds) const {
  const auto it = speed_changes_.find(layout_.classes[stream.rank_class].endpoint);
  if (it == speed_changes_.end()) return stream.local_time_s + seconds;
  double time = stream.local_time_s, factor = 1, left = seconds;
  for (const auto& [at, next_factor] : it->second) {
    if (at > time) {
      if (left <= (at - time) * factor) return time + left / factor;
      left -= (at - time) * factor;
      time = at;
    }
    factor = next_factor;
  }
  return time + left / factor;
}

double Simulation::computed_s(const Stream& stream, double begin_s, double end_s) const {
  const auto it = speed_changes_.find(layout_.classes[stream.rank_class].endpoint);
  if (it == speed_changes_.end()) return end_s - begin_s;
  double time = begin_s, factor = 1, computed = 0;
  for (const auto& [at, next_factor] : it->second) {
    if (at >= end_s) break;
    if (at > time) {
      computed += (at - time) * factor;
      time = at;
    }
    factor = next_factor;
  }
  return computed + (end_s - time) * factor;
}

void Simulation::record(Stream& stream, double end_s, Status status) {
  if (stream.cursor.step() >= jobs_[layout_.classes[stream.rank_class].job].recorded_steps) return;
  Spans& s = stream.spans;
  s.rank_class.push_back(stream.rank_class);
  s.phase.push_back(stream.phase);
  s.step.push_back(stream.cursor.step());
  s.op.push_back(stream.cursor.op());
  s.iteration.push_back(stream.cursor.iteration());
  s.ready_s.push_back(stream.ready_s);
  s.begin_s.push_back(stream.begin_s);
  s.end_s.push_back(end_s);
  s.latency_s.push_back(stream.latency_s);
  if (layout_.interferes) s.slowed_s.push_back(stream.slowed_s);
  s.status.push_back(status);
  s.sender.push_back(stream.received_from);
}

void Simulation::signal(Stream& stream, const Op& op) {
  const Layout::Class& own = layout_.classes[stream.rank_class];
  const CounterAddress counter = stream.cursor.counter();
  const auto add = [&](std::size_t c) {
    const double value = ++classes_[c].counters[counter];
    for (int s : classes_[c].streams) {
      Stream& other = streams_[s];
      if (other.awaited_counter && *other.awaited_counter == counter && value >= other.awaited_value)
        other.bell.ring();
    }
  };
  if (op.signalled.empty()) return add(stream.rank_class);
  const std::vector<Role>& roles = run_.jobs[own.job].phases[stream.phase].schedule->roles;
  for (const Peer& peer : op.signalled)
    for (int r : peer_ranks(roles, own.role, peer, own.ranks.front()))
      for (std::size_t c = 0; c < layout_.classes.size(); ++c) {  // signals to other ranks are not folded
        const Layout::Class& other = layout_.classes[c];
        if (other.job == own.job && other.role == (peer.kind == Peer::Kind::offset ? own.role : peer.role) &&
            other.ranks.front() == r)
          add(c);
      }
}

void Simulation::wait_for_counter(Stream& stream) {
  const CounterAddress counter = stream.cursor.counter();
  stream.awaited_counter = &counter;
  stream.awaited_value = stream.cursor.awaited_value();
  while (!stream.cursor.reached(classes_[stream.rank_class].counters)) stream.bell.wait();
  stream.awaited_counter = nullptr;
}

}  // namespace rehearse
