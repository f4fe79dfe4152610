// Computes how long each kind of op takes, and how much communication computation hides, to compare
// predictions with measurements.
#pragma once

#include <string>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// Ops of one kind in a job's last step (rows.hpp; asynchronous: in the time of a step).
struct OpSeconds {
  std::string name;  // "forward", "optimizer on servers"; for transfers, their purpose: "gradient sync"
  std::string kind;  // "compute", "all-reduce", "exchange", "host"
  bool operator==(const OpSeconds& other) const { return name == other.name && kind == other.kind; }
  // Seconds of one rank: the sum over all these ops, mean over the ranks of the role. Transfers count from
  // the time when all sides were ready.
  double seconds = 0;
  double count = 0;  // of one rank, mean over the role
};
// Returns the kinds in the order in which the schedule's programs have them; control ops are omitted.
std::vector<OpSeconds> seconds_by_op(const Trace& trace, int job);

// Communication of a mean worker in the same time: transfers from the time when all sides were ready;
// overlapping transfers count once.
struct Overlap {
  double communication_s = 0;
  double hidden_s = 0;  // part of it during which the worker computed
  double share() const { return communication_s > 0 ? hidden_s / communication_s : 0; }
};
Overlap overlap(const Trace& trace, int job);

}  // namespace rehearse
