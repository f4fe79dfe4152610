// Indexes a program's ops: the order of each stream, the bounds of repeats, and how often an op must have run
// before another can begin.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

struct ProgramIndex {
  // Throws RunError if ops, streams, tensors, works, axes or repeats are out of range or do not match.
  ProgramIndex(const Schedule& schedule, const Program& program);

  std::vector<std::vector<int>> stream_ops;  // ops of each stream, in order
  std::vector<int> position;                 // of each op in its stream
  std::vector<int> partner;                  // op indices, repeat_begin <-> repeat_end; else -1
  std::vector<int> per_step;                 // how often an op runs in a step; 0: endlessly

  // Returns how often `dependency.op` must have ended (counting from the run's start) before the `nth` run of
  // `op` (counting from 1) can begin.
  long required(int op, const Dependency& dependency, long nth) const;
};

}  // namespace rehearse
