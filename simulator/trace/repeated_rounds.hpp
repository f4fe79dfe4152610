// Finds out whether a step with more micro-batches would only repeat what a trace already contains.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/trace/critical_path.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/step_traffic.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse {

// A step of which some micro-batches were simulated. The trace `shorter` has one round of micro-batches less
// than the trace beside which this is kept; the whole step has `repeats` further rounds, which are all alike.
struct RepeatedRounds {
  int microbatches = 0;  // that were simulated, in the longer trace
  int round = 1;         // micro-batches of a round
  double repeats = 0;
  bool exact = true;  // all rounds are alike; otherwise they are only assumed to be
  Trace shorter;
  std::vector<PathSegment> shorter_path;  // its critical path; empty: not asked for

  // Returns the value for the whole step of a figure to which every round adds the same.
  double extended(double at_shorter, double at_longer) const {
    return at_longer + repeats * (at_longer - at_shorter);
  }
  // Does the same for figures by name; a name that one of them lacks has 0 there.
  std::map<std::string, double> extended(const std::map<std::string, double>& at_shorter,
                                         std::map<std::string, double> at_longer) const;
};

// Returns whether two traces have the same classes of ranks.
bool same_ranks(const Trace& a, const Trace& b);

// Returns whether the two traces, of the same ranks, differ only in one round: in each step, every stream of
// every rank first does the same as in the shorter trace at the same times, and ends with the same at times
// that are later by one and the same interval, the round's. As a rank's behaviour depends only on what it has
// left to do and on the times since then, any further round repeats this one. Host processes that issue
// kernels must not fall behind by some time in each round, which could come to light only later.
bool repeats_a_round(const Trace& shorter, const Trace& longer);

// Return the traffic and the metrics of the whole step from those of the two traces.
StepTraffic whole_traffic(const Trace& trace, const RepeatedRounds& rounds, const Cluster& cluster);
Metrics whole_step(const Metrics& shorter, const Metrics& longer, const Trace& trace,
                   const RepeatedRounds& rounds, const Cluster& cluster);

}  // namespace rehearse
