// Forked processes, each of which computes one numbered task and sends its output through a pipe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rehearse {

struct TaskEnd {
  std::int64_t task = 0;
  std::string output;   // what `work` returned
  std::string failure;  // how the process ended, if not by itself; else empty
};

// Children die with this process, also when it is killed.
class ChildTasks {
public:
  explicit ChildTasks(std::function<std::string(std::int64_t)> work) : work_(std::move(work)) {}
  ChildTasks(const ChildTasks&) = delete;
  ChildTasks& operator=(const ChildTasks&) = delete;
  ~ChildTasks();  // kills those that still compute

  std::vector<std::int64_t> tasks() const;  // those that are being computed, in the order of their starts
  std::size_t size() const { return children_.size(); }
  void start(std::int64_t task);  // RunError if no process can be made
  void stop(std::int64_t task);   // kills its process; nothing comes of it
  // Waits until a child has sent something or ended, or for `most_ms` milliseconds; returns the tasks that
  // ended.
  std::vector<TaskEnd> wait(int most_ms);

private:
  struct Child {
    pid_t process = -1;
    int pipe = -1;
    TaskEnd end;
  };
  static bool receive(Child& child);
  [[noreturn]] void work_in_child(std::int64_t task, int pipe, pid_t parent) const;

  std::function<std::string(std::int64_t)> work_;
  std::vector<Child> children_;
};

}  // namespace rehearse
