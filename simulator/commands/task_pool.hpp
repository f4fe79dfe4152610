// Numbered tasks, each in a forked process of its own, several at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/commands/child_tasks.hpp"

namespace rehearse {

struct TaskPool {
  int jobs = 1;
  std::function<std::int64_t()> next;             // the next task; negative: there are no more
  std::function<std::string(std::int64_t)> work;  // in the child
  std::function<void(const TaskEnd&)> ended;      // in this process, in the order in which tasks end
  std::function<void()> tick;                     // in this process, ten times a second or more often
};

// Returns when all tasks have ended. Children die with this process, also when it is killed. RunError if no
// process can be made.
void run(const TaskPool& pool);

}  // namespace rehearse
