// Writers: one result, several formats.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/report/uncertainty.hpp"
#include "simulator/scenario/advice.hpp"
#include "simulator/trace/measurement.hpp"

namespace rehearse {

// The step if parts that [[cluster.slow]] slows down ran at full speed.
struct SlowCost {
  std::vector<int> parts;  // of Cluster::slow_parts
  double step_time_s = 0;
};

// Everything a writer may need.
struct Result {
  const Scenario& scenario;
  const Plan& plan;
  const Trace& trace;
  Metrics metrics;
  std::vector<PathSegment> path;          // empty: not asked for
  std::vector<WhatIf> faster;             // what 10 % more of each resource that is used would bring
  const Measurement* measured = nullptr;  // null: predicted
  std::vector<SlowCost> slow = {};        // of all slowed parts together, then of some alone
  std::optional<Uncertainty> uncertainty = std::nullopt;  // of the step time; none: not asked for
};

// Which inputs the answer rests on, and how good they are. `cost`: what only the money, energy and carbon of
// the answer rest on.
struct Input {
  enum class Group { compute, network, protocol, cost } group = Group::compute;
  Basis basis = Basis::guess;
  std::string name;    // "kernel overhead"
  std::string of;      // what it is a figure of: "a100-80", "NCCL 2.30.7"
  std::string source;  // may be empty
};
std::vector<Input> rests_on(const Scenario& scenario, const Plan& plan);
// "compute published (a100-80, 8 figures), network published (dgx-a100); 1 guess (kernel overhead)": those
// that the step time rests on.
std::string in_short(const std::vector<Input>& inputs);

// By which algorithms the schedule's all-reduces go: "tree, ring"; empty if it has none.
std::string all_reduce_algorithms(const Schedule& schedule);

// Whether a sentence includes its advice, or advice_of() returns it separately.
enum class AdviceTold { in_sentence, apart };
// The largest loss in one sentence, with a way out where there is one.
std::string bottleneck_sentence(const Result& result, AdviceTold advice = AdviceTold::in_sentence);
// Advice that makes the scenario fit into memory; if it fits, advice against its losses, beginning with the
// bottleneck. Each has assignments to try.
std::vector<Advice> advice_of(const Result& result);
// Whom a worker waits for that waits for no transfer: "slower ranks", "servers" that wait for nobody else, or
// both.
std::string waited_for(const Scenario& scenario);
// What the fullest device needs; if that is more than it has, what would need less. Empty if nothing is
// known.
std::string memory_sentence(const Result& result, AdviceTold advice = AdviceTold::in_sentence);
// "Host memory: 145 of 1,536 GiB on node0."; what does not fit is said first.
std::string host_memory_sentence(const HostMemoryUse& host);
// "stage 1 needs 95.1 of 80.0 GiB (weights 7.95, ...); smaller micro-batches keep less (try ...)", of a
// result that does not fit.
std::string overflow_clause(const Result& result, AdviceTold advice = AdviceTold::in_sentence);

// What a step costs in money and energy, or which key of the scenario would tell.
std::string cost_sentence(const Result& result);
// How long the whole training takes and what it costs; empty if the scenario does not say how long it is.
std::string training_sentence(const Result& result);

// What the step time hangs on, and what would help most; empty if the path was not asked for.
std::string critical_path_sentence(const Result& result);

void write_text(const Result& result, std::ostream& out);
void write_json(const Result& result, std::ostream& out);
void write_csv(const Result& result, std::ostream& out);
// Its columns with the row's values, quoted where they must be.
std::vector<std::pair<std::string, std::string>> csv_fields(const Result& result);
// "33.0 ms to 35.6 ms over 8 starting phases of the workers": between which step times the mean lies; empty
// if the result is no such mean.
std::string starting_phases_clause(const Metrics& metrics);
// "data 4 x pipeline 2, 1F1B, micro-batch 2, ring all-reduce, fp32"
std::string strategy_line(const Scenario& scenario, const Schedule& schedule);
// Chrome Trace Event JSON; gzipped if `path` ends in ".gz". RunError if it cannot be written.
void write_chrome_trace(const Result& result, const std::string& path);

}  // namespace rehearse
