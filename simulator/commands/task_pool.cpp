#include "simulator/commands/task_pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr int kTickMs = 100;

struct Child {
  pid_t process = -1;
  int pipe = -1;
  TaskEnd end;
};

[[noreturn]] void work_in_child(const TaskPool& pool, std::int64_t task, int pipe, pid_t parent) {
  // The parent may have died before the kernel was told what is to happen then.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  std::string output;
  try {
    output = pool.work(task);
  } catch (...) {
    _exit(1);
  }
  for (std::size_t sent = 0; sent < output.size();) {
    const ssize_t n = write(pipe, output.data() + sent, output.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    sent += static_cast<std::size_t>(n);
  }
  _exit(0);  // nothing of the parent's is flushed or destroyed a second time
}

class Children {
public:
  explicit Children(const TaskPool& pool) : pool_(pool) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  // After an exception there are some left.
  ~Children() {
    for (const Child& child : children_) {
      kill(child.process, SIGKILL);
      close(child.pipe);
      while (waitpid(child.process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }

  std::size_t size() const { return children_.size(); }

  void start(std::int64_t task) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw RunError(fmt::format("no pipe for a simulation: {}", std::strerror(errno)));
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
      close(ends[0]);
      work_in_child(pool_, task, ends[1], parent);
    }
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      throw RunError(fmt::format("no process for a simulation: {}", std::strerror(errno)));
    }
    children_.push_back({child, ends[0], {task, {}, {}}});
  }

  // Reads what there is, at most until the next tick; hands over the tasks that ended.
  void wait() {
    std::vector<pollfd> polled;
    for (const Child& child : children_) polled.push_back({child.pipe, POLLIN, 0});
    if (poll(polled.data(), polled.size(), kTickMs) <= 0) return;
    std::vector<Child> going, done;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      const bool over = polled[i].revents != 0 && !receive(children_[i]);
      (over ? done : going).push_back(std::move(children_[i]));
    }
    children_ = std::move(going);
    for (Child& child : done) {
      close(child.pipe);
      int status = 0;
      while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
      }
      if (WIFSIGNALED(status)) {
        child.end.failure = fmt::format("the simulation ended by signal {} ({})", WTERMSIG(status),
                                        strsignal(WTERMSIG(status)));
      } else if (WEXITSTATUS(status) != 0) {
        child.end.failure = "the simulation ended without a result";
      }
    }
    for (const Child& child : done) pool_.ended(child.end);
  }

private:
  static bool receive(Child& child) {
    char buffer[1 << 16];
    const ssize_t n = read(child.pipe, buffer, sizeof buffer);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    child.end.output.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  const TaskPool& pool_;
  std::vector<Child> children_;
};

}  // namespace

void run(const TaskPool& pool) {
  Children children(pool);
  for (bool more = true; more || children.size() > 0;) {
    while (more && children.size() < static_cast<std::size_t>(pool.jobs)) {
      const std::int64_t task = pool.next();
      more = task >= 0;
      if (more) children.start(task);
    }
    if (children.size() > 0) children.wait();
    pool.tick();
  }
}

}  // namespace rehearse
