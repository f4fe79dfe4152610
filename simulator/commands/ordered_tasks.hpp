// Tasks in an order, computed by forked children and by other processes that share a file of results; results
// are handed over in the order of the tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/commands/child_tasks.hpp"

namespace rehearse {

class SharedResults;

struct OrderedTasks {
  int jobs = 1;            // children of this process that compute at once
  std::int64_t count = 0;  // tasks are numbered from 0
  std::int64_t first = 0;  // the number of task 0 in the file of results
  // In this process: whether the task is wanted, given the results handed over so far. Once it is false for a
  // task, it stays false.
  std::function<bool(std::int64_t)> wanted;
  // In a child: the result, one line of text without a line feed. It depends on the task alone.
  std::function<std::string(std::int64_t)> work;
  std::function<void(const TaskEnd&)> taken;  // in this process, in the order of the tasks
  std::function<void()> tick;        // in this process, ten times a second or more often; may be empty
  SharedResults* results = nullptr;  // null: results are neither kept nor shared
};

// Does what this loop does:
//   for (task = 0; task < count; ++task)
//     if (wanted(task)) taken({task, work(task)});
// The calls of taken() are the same for any number of jobs and of processes that run the same tasks with the
// same file, in whichever order tasks end, and however often processes are killed and started again. Each
// process that reaches the end has handed over all wanted tasks, whoever computed them.
//
// Children compute ahead: they start with the first tasks that are wanted by what is known so far and that no
// other process has claimed. A task that turns out to be unwanted is stopped, or dropped at its turn; its
// line in the file does no harm. One process with one job computes nothing that is not handed over.
//
// No task is computed twice, except those that a process was computing when it died: another process that
// waits for them, or the next start, computes them again. If the file has a result for a task, that result is
// handed over; so processes agree even if two computations of a task would differ.
//
// If a child dies, or its `work` throws, TaskEnd::failure is handed over at its turn, and nothing is written
// to the file: other processes, and this one after a restart, compute the task again when they come to it.
// Processes agree about a failure only if it is repeated there.
//
// Children die with this process, also when it is killed. RunError if no process can be made or the file
// cannot be written; InputError if the file is damaged; std::logic_error if a task is wanted again.
void run(const OrderedTasks& tasks);

}  // namespace rehearse
