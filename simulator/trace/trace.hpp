// Records a run: spans in columns, one for every op that a rank (if folded: a class of ranks) ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/schedule/schedule.hpp"
#include "simulator/trace/kernel_span.hpp"

namespace rehearse {

enum class Status : std::uint8_t { done, failed, cancelled };
inline constexpr std::array<std::string_view, 3> kStatusNames = {"done", "failed", "cancelled"};

// A row of the timeline: ranks that did the same at the same times. Each has one rank if the run was not
// folded.
struct RankClass {
  int job = 0, role = 0;
  int phase_program = 0;   // program in the first phase's schedule
  std::vector<int> ranks;  // of the role, ascending; the first one represents all
  double issued_s = 0;     // simulated: how long the rank's process took to issue kernels, in the entire run
};

// Spans of ops in seconds of simulated (or measured) time. Columns have equal length; rows are ordered by
// (class, stream, time).
struct Spans {
  std::vector<int> rank_class;
  std::vector<int> phase, step;  // step counts through all phases of the job
  std::vector<int> op;           // in the program of the class
  std::vector<int> iteration;    // of the innermost repeat; 0 outside
  std::vector<double> ready_s;   // the op's stream and dependencies allowed it to begin
  std::vector<double> begin_s;   // transfers: all sides ready; otherwise ready_s
  std::vector<double> end_s;
  std::vector<double> latency_s;  // before the bytes of a transfer; of a computation's launch; empty: unknown
  // Computation: the delay by concurrent collectives; empty: none, or unknown.
  std::vector<double> slowed_s;
  std::vector<Status> status;
  std::vector<int> sender;  // rank received from, for receives from any rank; else -1
  std::size_t size() const { return op.size(); }
  void reserve(std::size_t spans) {
    for (auto* column : {&rank_class, &phase, &step, &op, &iteration, &sender}) column->reserve(spans);
    for (auto* column : {&ready_s, &begin_s, &end_s, &latency_s}) column->reserve(spans);
    status.reserve(spans);
  }
  void append(const Spans& more) {
    const auto add = [](auto& all, const auto& own) { all.insert(all.end(), own.begin(), own.end()); };
    add(rank_class, more.rank_class);
    add(phase, more.phase);
    add(step, more.step);
    add(op, more.op);
    add(iteration, more.iteration);
    add(ready_s, more.ready_s);
    add(begin_s, more.begin_s);
    add(end_s, more.end_s);
    add(latency_s, more.latency_s);
    add(slowed_s, more.slowed_s);
    add(status, more.status);
    add(sender, more.sender);
  }
};

struct LinkUse {
  int link = 0;  // the link that represents its class
  int members = 1;
  double bytes = 0;  // carried by ONE link of the class over the entire run
};

struct Trace {
  Run run;  // the run that was executed
  std::vector<RankClass> classes;
  Spans spans;
  // Of a measured run on GPUs that recorded them: by class, in order of their start. Figures do not use them.
  std::vector<std::vector<KernelSpan>> kernels;
  std::vector<LinkUse> link_use;
  double end_s = 0;
  double bytes_total = 0;  // put on the network by all ranks: bytes x transfers, each transfer once
  std::vector<bool> job_failed;
  std::vector<std::string> failures;  // "link leaf0-spine1 died at 0.5 s"
  struct EngineFacts {
    std::string fidelity;  // what was used: "analytic", "flow", "chunk", "analytic+flow"
    int classes = 0;
    std::int64_t events = 0;  // ops run and messages sent by the engine
  } engine;

  const Program& program_of(std::size_t span) const;
  const Op& op_of(std::size_t span) const { return program_of(span).ops[spans.op[span]]; }
};

}  // namespace rehearse
