// Runs numbered tasks in worker processes that live on, so that what one task has prepared serves the next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/commands/tasks/child_tasks.hpp"

namespace rehearse {

struct WorkerPool {
  int jobs = 1;
  int in_a_row = 1;                    // successive tasks that the same worker takes, if there are as many
  std::function<std::int64_t()> next;  // returns the next task; negative: there are no more
  // Called in a worker, whose memory it may change; must not throw. What it returns is called in a child of
  // the worker.
  std::function<std::function<std::string()>(std::int64_t)> prepare;
  std::function<void(const TaskEnd&)> ended;  // called in this process, in the order in which tasks end
  std::function<void()> tick;                 // called in this process at least ten times per second
};

// Returns when all tasks have ended. Workers and their children die with this process, even if it is killed;
// a worker that dies costs its own task alone. Throws RunError if no process can be created.
void run(const WorkerPool& pool);

}  // namespace rehearse
