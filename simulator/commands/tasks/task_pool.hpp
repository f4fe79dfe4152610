// Runs numbered tasks, each in a separate forked process, several at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/commands/tasks/child_tasks.hpp"

namespace rehearse {

struct TaskPool {
  int jobs = 1;
  std::function<std::int64_t()> next;             // returns the next task; negative: there are no more
  std::function<std::string(std::int64_t)> work;  // called in the child
  std::function<void(const TaskEnd&)> ended;      // called in this process, in the order in which tasks end
  std::function<void()> tick;                     // called in this process at least ten times per second
};

// Returns when all tasks have ended. Children die with this process, even if it is killed. Throws RunError if
// no process can be created.
void run(const TaskPool& pool);

}  // namespace rehearse
