#include "simulator/engine/engine.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "models/text/error.hpp"
#include "simulator/engine/run_ahead.hpp"
#include "simulator/engine/simulation.hpp"
#include "simulator/engine/trace_pipe.hpp"

namespace rehearse {

namespace {

// Returns which flows need SimGrid: those that may have to share links. The times of all others are known
// when they start.
std::vector<bool> simulated_flows(const Layout& layout, const EngineOptions& options) {
  std::vector<bool> simulated(layout.flows.size(), false);
  for (std::size_t f = 0; f < layout.flows.size(); ++f) switch (options.fidelity) {
      case Fidelity::chunk:
      case Fidelity::flow:
        simulated[f] = true;
        break;
      case Fidelity::analytic:
        simulated[f] = layout.flows[f].always_flow;
        break;
      case Fidelity::automatic:
        simulated[f] = layout.flows[f].contended;
        break;
    }
  // The flows of a transfer are simulated together: all of them or none.
  for (const TransferClass& transfer : layout.transfers) {
    bool any = false;
    for (int f : transfer.flows) any = any || simulated[f];
    for (int f : transfer.flows) simulated[f] = any;
  }
  return simulated;
}

// Returns whether actors may be stopped before they end: by events, or because they serve other streams in an
// endless loop and are no longer needed when those have ended.
bool stops_actors(const Run& run) {
  const auto is_endless = [](const Op& op) { return op.kind == OpKind::repeat_begin && op.count == 0; };
  for (const Job& job : run.jobs)
    for (const Phase& phase : job.phases) {
      if (phase.schedule->asynchrony) return true;
      for (const Program& program : phase.schedule->programs)
        if (std::any_of(program.ops.begin(), program.ops.end(), is_endless)) return true;
    }
  return !run.events.empty();
}

// SimGrid counts bytes in 64 bits, in units far below a byte.
constexpr double kMostBytes = 1e14;

void refuse_huge_transfers(const Schedule& schedule) {
  const auto most = [](const Quantity& q) {
    double bytes = q.base;
    for (double value : q.values) bytes = std::max(bytes, value);
    return bytes;
  };
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      double bytes = op.kind == OpKind::collective ? most(op.collective.bytes) : 0;
      for (const Message& message : op.messages) bytes = std::max(bytes, most(message.bytes));
      if (!(bytes <= kMostBytes))
        throw RunError(
            fmt::format("\"{}\" of \"{}\" moves {:.3g} bytes; the engine carries at most {:.3g} at once",
                        op.name, program.name, bytes, kMostBytes));
    }
}

// Calls `watch` periodically until the pipe can be read or its other end is closed.
void watch_until_result(int pipe, const SharedProgress& progress, const WatchSimulation& watch) {
  constexpr int kTickMs = 100;
  pollfd polled{pipe, POLLIN, 0};
  for (;;) {
    const int ready = poll(&polled, 1, kTickMs);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return;
    watch(progress.read());
  }
}

}  // namespace

Simulation::Simulation(const Run& run, const Cluster& cluster, const EngineOptions& options)
    : run_(run),
      cluster_(cluster),
      options_(options),
      layout_(lay_out(run, cluster, options)),
      runs_ahead_(may_run_ahead(run, options)),
      in_time_(called_in_time(run, layout_)),
      platform_(layout_, simulated_flows(layout_, options), !run.events.empty(),
                sg::kSanitized && stops_actors(run)),
      carrier_(platform_, !run.events.empty() || options.fidelity == Fidelity::chunk),
      transfers_(layout_.transfers.size()),
      positions_(layout_.positions.size()),
      jobs_(run.jobs.size()),
      link_bytes_(layout_.links.size(), 0) {
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    for (const Phase& phase : run.jobs[j].phases) jobs_[j].recorded_steps += phase.repeats;
    if (run.jobs[j].phases.back().schedule->asynchrony)
      jobs_[j].recorded_steps = std::numeric_limits<int>::max();
  }
}

Trace Simulation::run() {
  const double messages = options_.fidelity == Fidelity::chunk ? chunk_messages() : 0;
  refuse_too_many_messages(messages);
  start_events();
  start_streams();
  begin_stage(SimulationStage::run, ops_to_run() + static_cast<std::int64_t>(messages));
  platform_.engine().run();
  sg::tell_stack_of_process();
  finish_trace();

  Trace trace;
  trace.run = run_;
  for (std::size_t c = 0; c < layout_.classes.size(); ++c) {
    const Layout::Class& its = layout_.classes[c];
    trace.classes.push_back({its.job, its.role, its.phases.front().program, its.ranks, classes_[c].issued_s});
  }
  std::size_t spans = 0;
  for (const Stream& s : streams_) spans += s.spans.size();
  trace.spans.reserve(spans);
  std::string stuck;
  for (Stream& s : streams_) {
    const JobState& job = jobs_[layout_.classes[s.rank_class].job];
    if (!s.ended && !s.endless && !job.failed)
      stuck += fmt::format("\n  \"{}\", stream \"{}\", op {} \"{}\"", program(s).name,
                           program(s).streams[s.number], s.cursor.at_end() ? -1 : s.cursor.op(),
                           s.cursor.at_end() ? "" : s.cursor.current().name);
    trace.spans.append(s.spans);
    s.spans = {};
  }
  if (!stuck.empty()) throw RunError("the run cannot continue; these ops wait forever:" + stuck);
  for (double end : trace.spans.end_s) trace.end_s = std::max(trace.end_s, end);
  const Phase& phase = run_.jobs.front().phases.back();
  const double recorded = static_cast<double>(phase.repeats) / (phase.repeats + phase.beyond);
  for (std::size_t l = 0; l < layout_.links.size(); ++l)
    if (link_bytes_[l] > 0)
      trace.link_use.push_back(
          {layout_.links[l].representative, layout_.links[l].members, link_bytes_[l] * recorded});
  trace.bytes_total = bytes_total_ * recorded;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    trace.job_failed.push_back(jobs_[j].failed);
    for (const auto& [time, reason] : jobs_[j].failures)
      trace.failures.push_back(
          fmt::format("job \"{}\" failed at {:.9g} s: {}", run_.jobs[j].name, time, reason));
  }
  if (used_analytic_) trace.engine.fidelity = "analytic";
  if (used_flow_) trace.engine.fidelity += trace.engine.fidelity.empty() ? "flow" : "+flow";
  if (used_chunk_) trace.engine.fidelity += trace.engine.fidelity.empty() ? "chunk" : "+chunk";
  if (trace.engine.fidelity.empty())
    trace.engine.fidelity = kFidelityNames[static_cast<int>(options_.fidelity)];
  trace.engine.classes = static_cast<int>(layout_.classes.size());
  trace.engine.events = events_;
  return trace;
}

Trace simulate(const Run& run, const Cluster& cluster, const EngineOptions& options, Schedules schedules) {
  for (const Job& job : run.jobs) {
    if (job.phases.empty()) throw RunError(fmt::format("job \"{}\" has no phases", job.name));
    const auto ranks = static_cast<std::size_t>(job.phases.front().schedule->ranks());
    if (!job.start_s.empty() && job.start_s.size() != ranks)
      throw RunError(
          fmt::format("job \"{}\" has {} ranks but {} start times", job.name, ranks, job.start_s.size()));
    for (const Phase& phase : job.phases) {
      if (schedules == Schedules::to_check) check(*phase.schedule);
      refuse_huge_transfers(*phase.schedule);
    }
  }
  return Simulation(run, cluster, options).run();
}

Trace simulate_in_child(const Run& run, const Cluster& cluster, const EngineOptions& options,
                        const WatchSimulation& watch, Schedules schedules) {
  const std::optional<SharedProgress> progress = watch ? std::make_optional<SharedProgress>() : std::nullopt;
  int ends[2];
  if (pipe(ends) != 0)
    throw RunError(fmt::format("cannot create a pipe for a simulation: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw RunError(fmt::format("cannot start a process for a simulation: {}", std::strerror(errno)));
  }
  if (child == 0) {
    close(ends[0]);
    // Nobody reads the trace once the parent is dead. The parent may have died before prctl() was called.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    for (int s : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGTERM})
      std::signal(s, SIG_DFL);  // instead of the caller's handlers
    bool sent = false;
    try {
      if (progress) progress->count_here();
      sent = send_trace(simulate(run, cluster, options, schedules), ends[1]);
    } catch (const std::exception& e) {
      sent = send_failure(e.what(), ends[1]);
    }
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::string failure;
  Trace trace;
  if (progress) watch_until_result(ends[0], *progress, watch);
  const bool received = receive_trace(ends[0], trace, failure);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!failure.empty()) throw RunError(failure);
  if (!received)
    throw RunError(WIFSIGNALED(status) ? fmt::format("the simulation was ended by signal {} ({})",
                                                     WTERMSIG(status), strsignal(WTERMSIG(status)))
                                       : std::string("the simulation ended without a result"));
  trace.run = run;
  return trace;
}

}  // namespace rehearse
