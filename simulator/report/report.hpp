// Writes one result in several formats.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/report/uncertainty.hpp"
#include "simulator/scenario/advice.hpp"
#include "simulator/trace/measurement.hpp"
#include "simulator/trace/repeated_rounds.hpp"

namespace rehearse {

// The step time if parts that [[cluster.slow]] slows down ran at full speed.
struct SlowCost {
  std::vector<int> parts;  // indices into Cluster::slow_parts
  double step_time_s = 0;
};

// A change of the scenario that was simulated.
struct TriedRemedy {
  std::string why;
  std::vector<std::string> sets;  // "--set" assignments
  double step_time_s = 0, samples_per_s = 0;
  double gain = 0;          // share by which the time per sample becomes shorter
  double memory_bytes = 0;  // on the fullest device
};
using TriedRemedies = std::vector<TriedRemedy>;  // those that are worth it, the best first

// Returns the change that has these assignments; null if there is none.
const TriedRemedy* remedy_with(const TriedRemedies& remedies, const std::vector<std::string>& sets);

// Steps after a checkpoint. Their metrics are of themselves alone.
struct CheckpointRun {
  CheckpointCycle cycle;
  Plan plan;
  Trace trace;
  Metrics metrics;
};

// Everything that a writer can need.
struct Result {
  const Scenario& scenario;
  const Plan& plan;
  const Trace& trace;
  Metrics metrics;
  std::vector<PathSegment> path;          // empty: not asked for
  std::vector<WhatIf> faster;             // what 10 % more of each resource that is used would save
  const Measurement* measured = nullptr;  // null: predicted
  std::vector<SlowCost> slow = {};        // of all slowed parts together, then of some alone
  std::optional<Uncertainty> uncertainty = std::nullopt;  // of the step time; nullopt: not asked for
  std::optional<TriedRemedies> remedies = std::nullopt;   // nullopt: not tried
  // If set, plan, trace and path are those of a step with fewer micro-batches; metrics are of the whole step.
  const RepeatedRounds* rounds = nullptr;
  bool tells_tensors = false;                 // text and JSON tell what fills the fullest device at its peak
  const CheckpointRun* checkpoint = nullptr;  // if set, timelines show it instead of plan and trace
};

// An input on which the answer is based, and its quality. `cost`: inputs only of the answer's money, energy
// and carbon.
struct Input {
  enum class Group { compute, network, protocol, cost } group = Group::compute;
  Basis basis = Basis::guess;
  std::string name;    // "kernel overhead"
  std::string of;      // what it is a figure of: "a100-80", "NCCL 2.30.7"
  std::string source;  // can be empty
};
std::vector<Input> rests_on(const Scenario& scenario, const Plan& plan);
// Summarizes the inputs of the step time: "compute published (a100-80, 8 figures), network published
// (dgx-a100); 1 guess (kernel overhead)".
std::string in_short(const std::vector<Input>& inputs);

// Returns the algorithms of the schedule's all-reduces: "tree, ring"; empty if it has none.
std::string all_reduce_algorithms(const Schedule& schedule);

// Whether a sentence includes its advice, or advice_of() returns it separately.
enum class AdviceTold { in_sentence, apart };
// Describes the largest loss in one sentence, with advice where there is any.
std::string bottleneck_sentence(const Result& result, AdviceTold advice = AdviceTold::in_sentence);
// Returns advice that makes the scenario fit into memory; if it fits, advice against its losses, beginning
// with the bottleneck. Each has assignments to try.
std::vector<Advice> advice_of(const Result& result);
// Returns whom a worker waits for when it does not wait for a transfer: "slower ranks", "servers" that wait
// for nobody else, or both.
std::string waited_for(const Scenario& scenario);
// Describes what the fullest device needs and, if that is more than it has, what would need less. Empty if
// this is unknown.
std::string memory_sentence(const Result& result, AdviceTold advice = AdviceTold::in_sentence);
// Returns "Host memory: 145 of 1,536 GiB on node0.", for example; if it does not fit, the sentence begins
// with that.
std::string host_memory_sentence(const HostMemoryUse& host);
// Returns "stage 1 needs 95.1 of 80.0 GiB (weights 7.95, ...); smaller micro-batches keep less (try ...)",
// for example, for a result that does not fit.
std::string overflow_clause(const Result& result, AdviceTold advice = AdviceTold::in_sentence);

// Describes what a step costs in money and energy, or which key of the scenario is missing.
std::string cost_sentence(const Result& result);
// Describes how long the entire training takes and what it costs; empty if the scenario does not say how long
// it is.
std::string training_sentence(const Result& result);

// Returns the seconds of the whole critical path by kind, the longest first.
std::vector<std::pair<std::string, double>> path_by_kind(const Result& result);
// Describes what determines the step time, and what would help most; empty if the path was not asked for.
std::string critical_path_sentence(const Result& result);

void write_text(const Result& result, std::ostream& out);
void write_json(const Result& result, std::ostream& out);
void write_csv(const Result& result, std::ostream& out);
// Returns the columns of write_csv() with the row's values, quoted if necessary.
std::vector<std::pair<std::string, std::string>> csv_fields(const Result& result);
// Returns the range of step times over which the mean is taken: "33.0 ms to 35.6 ms over 8 starting phases of
// the workers", or "the mean of 64 steps, of which 90 % take 33.0 to 35.6 ms"; empty if the result is not
// such a mean.
std::string spread_clause(const Metrics& metrics);
// Returns "data 4 x pipeline 2, 1F1B, micro-batch 2, ring all-reduce, fp32", for example.
std::string strategy_line(const Scenario& scenario, const Schedule& schedule);
// Writes Chrome Trace Event JSON; gzipped if `path` ends in ".gz". Throws RunError if it cannot be written.
void write_chrome_trace(const Result& result, const std::string& path);

}  // namespace rehearse
