// Runs tasks in forked children and in other processes that share a file of results, and hands the results
// over in the order of the tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/commands/tasks/child_tasks.hpp"

namespace rehearse {

class SharedResults;

struct OrderedTasks {
  int jobs = 1;            // concurrent children of this process
  std::int64_t count = 0;  // tasks are numbered from 0
  std::int64_t first = 0;  // number of task 0 in the file of results
  // Called in this process: returns whether the task is wanted, given the results handed over so far. Once it
  // returns false for a task, it must always do so.
  std::function<bool(std::int64_t)> wanted;
  // Called in a child: returns the result, one line of text without a line feed, which depends on the task
  // alone.
  std::function<std::string(std::int64_t)> work;
  std::function<void(const TaskEnd&)> taken;  // called in this process, in the order of the tasks
  std::function<void()> tick;        // called in this process at least ten times per second; may be empty
  SharedResults* results = nullptr;  // null: results are neither stored nor shared
};

// Has the same effect as this loop:
//   for (task = 0; task < count; ++task)
//     if (wanted(task)) taken({task, work(task)});
// The calls of taken() are the same for any number of jobs and of processes that run the same tasks with the
// same file, in whichever order tasks end, and however often processes are killed and started again. Each
// process that reaches the end has handed over all wanted tasks, whoever computed them.
//
// Children compute ahead: they start with the first tasks that are wanted according to the known results and
// that no other process has claimed. A task that turns out to be unwanted is stopped, or dropped at its turn;
// its line in the file does no harm. A single process with one job computes only what it hands over.
//
// No task is computed twice, except those that a process was computing when it died: another process that
// waits for them, or the next start, computes them again. If the file has a result for a task, that result is
// handed over, so processes agree even if two computations of a task would differ.
//
// If a child dies, or its `work` throws, TaskEnd::failure is handed over at the task's turn, and the file
// stays unchanged: other processes, and this one after a restart, compute the task again when they come to
// it. Processes agree about a failure only if it recurs there.
//
// Children die with this process, even if it is killed. Throws RunError if no process can be created or the
// file cannot be written, InputError if the file is damaged, and std::logic_error if a task is wanted again.
void run(const OrderedTasks& tasks);

}  // namespace rehearse
