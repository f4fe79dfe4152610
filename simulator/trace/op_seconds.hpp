// How long each kind of op takes, and how much of the communication computation hides: what a prediction and
// a measurement are compared by.
#pragma once

#include <string>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// Ops of one kind in a job's last step (rows.hpp; asynchronous: in the time of one round of each worker).
struct OpSeconds {
  std::string name;  // "forward", "optimizer on servers"; of transfers what is sent: "gradient sync"
  std::string kind;  // "compute", "all-reduce", "exchange", "host"
  bool operator==(const OpSeconds& other) const { return name == other.name && kind == other.kind; }
  // Of one rank: the sum of them all over the ranks of the role. Transfers count from when all sides were
  // ready.
  double seconds = 0;
  double count = 0;  // of one rank, in a mean over the role
};
// In the order in which the schedule's programs have them; control ops are left out.
std::vector<OpSeconds> seconds_by_op(const Trace& trace, int job);

// Communication of a mean worker in the same time: transfers from when all sides were ready, each instant
// once.
struct Overlap {
  double communication_s = 0;
  double hidden_s = 0;  // of it, while the worker computed
  double share() const { return communication_s > 0 ? hidden_s / communication_s : 0; }
};
Overlap overlap(const Trace& trace, int job);

}  // namespace rehearse
