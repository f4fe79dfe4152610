// Runs forked processes, each of which computes one numbered task and sends its output through a pipe.
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
  std::string output;   // return value of `work`
  std::string failure;  // how the process ended if it did not end normally; otherwise empty
};

// The running children, which die with this process, even if it is killed.
class ChildTasks {
public:
  explicit ChildTasks(std::function<std::string(std::int64_t)> work) : work_(std::move(work)) {}
  ChildTasks(const ChildTasks&) = delete;
  ChildTasks& operator=(const ChildTasks&) = delete;
  ~ChildTasks();  // kills those that are still computing

  std::vector<std::int64_t> tasks() const;  // those that are being computed, in the order of their starts
  std::size_t size() const { return children_.size(); }
  void start(std::int64_t task);  // throws RunError if no process can be created
  void stop(std::int64_t task);   // kills its process and discards its output
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
