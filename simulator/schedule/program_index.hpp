// What follows from a program's ops alone: the order of each stream, the bounds of repeats, and how often an
// op must have run before another may.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

struct ProgramIndex {
  // RunError if ops, streams, tensors, works, axes or repeats are out of range or do not match.
  ProgramIndex(const Schedule& schedule, const Program& program);

  std::vector<std::vector<int>> stream_ops;  // ops of each stream, in order
  std::vector<int> position;                 // of each op in its stream
  std::vector<int> partner;                  // repeat_begin <-> repeat_end, op numbers; else -1
  std::vector<int> per_step;                 // how often an op runs in a step; 0: without end

  // How often `dependency.op` must have ended (counting from the run's start) before the `nth` run of `op`
  // (counting from 1) may begin.
  long required(int op, const Dependency& dependency, long nth) const;
};

}  // namespace rehearse
