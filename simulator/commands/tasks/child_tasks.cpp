#include "simulator/commands/tasks/child_tasks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "models/text/error.hpp"
#include "simulator/commands/tasks/process_status.hpp"

namespace rehearse {

void ChildTasks::work_in_child(std::int64_t task, int pipe, pid_t parent) const {
  // The parent may have died before prctl() was called.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  std::string output;
  try {
    output = work_(task);
  } catch (...) {
    _exit(1);
  }
  for (std::size_t sent = 0; sent < output.size();) {
    const ssize_t n = write(pipe, output.data() + sent, output.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    sent += static_cast<std::size_t>(n);
  }
  _exit(0);  // does not flush or destroy anything of the parent's a second time
}

ChildTasks::~ChildTasks() {
  for (const std::int64_t task : tasks()) stop(task);
}

std::vector<std::int64_t> ChildTasks::tasks() const {
  std::vector<std::int64_t> tasks;
  for (const Child& child : children_) tasks.push_back(child.end.task);
  return tasks;
}

void ChildTasks::start(std::int64_t task) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw RunError(fmt::format("cannot create a pipe for a simulation: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    close(ends[0]);
    work_in_child(task, ends[1], parent);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw RunError(fmt::format("cannot start a process for a simulation: {}", std::strerror(errno)));
  }
  children_.push_back({child, ends[0], {task, {}, {}}});
}

void ChildTasks::stop(std::int64_t task) {
  const auto found = std::find_if(children_.begin(), children_.end(),
                                  [&](const Child& child) { return child.end.task == task; });
  if (found == children_.end()) return;
  kill(found->process, SIGKILL);
  close(found->pipe);
  status_at_end(found->process);
  children_.erase(found);
}

std::vector<TaskEnd> ChildTasks::wait(int most_ms) {
  std::vector<pollfd> polled;
  for (const Child& child : children_) polled.push_back({child.pipe, POLLIN, 0});
  if (poll(polled.data(), polled.size(), most_ms) <= 0) return {};
  std::vector<Child> going, done;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    const bool over = polled[i].revents != 0 && !receive(children_[i]);
    (over ? done : going).push_back(std::move(children_[i]));
  }
  children_ = std::move(going);
  std::vector<TaskEnd> ends;
  for (Child& child : done) {
    close(child.pipe);
    child.end.failure = failure_of(status_at_end(child.process));
    ends.push_back(std::move(child.end));
  }
  return ends;
}

bool ChildTasks::receive(Child& child) {
  char buffer[1 << 16];
  const ssize_t n = read(child.pipe, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  child.end.output.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace rehearse
