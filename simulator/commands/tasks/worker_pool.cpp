#include "simulator/commands/tasks/worker_pool.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <list>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/commands/tasks/process_status.hpp"

namespace rehearse {
namespace {

constexpr int kMostIdleMs = 100;

// A message from a worker begins with the bytes of its output and of its failure.
using Sizes = std::array<std::uint64_t, 2>;

bool send_all(int to, const void* bytes, std::size_t size) {
  for (std::size_t sent = 0; sent < size;) {
    const ssize_t n = ::send(to, static_cast<const char*>(bytes) + sent, size - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

// Runs one task of a worker in a child.
TaskEnd run_in_child(const WorkerPool& pool, std::int64_t task) {
  const std::function<std::string()> work = pool.prepare(task);
  ChildTasks child([&](std::int64_t) { return work(); });
  child.start(task);
  while (true)
    for (TaskEnd& end : child.wait(-1)) return std::move(end);
}

// Runs tasks as they come from the parent, until it closes the socket.
[[noreturn]] void serve(const WorkerPool& pool, int socket, pid_t parent) {
  // The parent may have died before prctl() was called.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  try {
    while (true) {
      std::int64_t task = 0;
      const ssize_t n = recv(socket, &task, sizeof task, MSG_WAITALL);
      if (n < 0 && errno == EINTR) continue;
      if (n != sizeof task) _exit(0);
      const TaskEnd end = run_in_child(pool, task);
      const Sizes sizes{end.output.size(), end.failure.size()};
      if (!send_all(socket, sizes.data(), sizeof sizes) ||
          !send_all(socket, end.output.data(), end.output.size()) ||
          !send_all(socket, end.failure.data(), end.failure.size()))
        _exit(1);
    }
  } catch (...) {
    _exit(1);
  }
}

class Workers {
public:
  explicit Workers(const WorkerPool& pool) : pool_(pool) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    for (Worker& worker : workers_) {
      kill(worker.process, SIGKILL);
      stop(worker);
    }
  }

  void run() {
    for (int i = 0; i < pool_.jobs && more_; ++i) {
      workers_.emplace_back();
      if (!give_task(workers_.back())) workers_.pop_back();
    }
    while (!workers_.empty()) {
      for (const TaskEnd& end : wait()) pool_.ended(end);
      pool_.tick();
    }
  }

private:
  struct Worker {
    pid_t process = -1;
    int socket = -1;
    std::int64_t task = -1;
    std::deque<std::int64_t> later;
    std::string received;
  };

  void start(Worker& worker) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw RunError(fmt::format("cannot create a socket for simulations: {}", std::strerror(errno)));
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
      close(ends[0]);
      for (const Worker& other : workers_)  // else they would not see the parent close them
        if (other.socket >= 0) close(other.socket);
      serve(pool_, ends[1], parent);
    }
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      throw RunError(fmt::format("cannot start a process for simulations: {}", std::strerror(errno)));
    }
    worker.process = child;
    worker.socket = ends[0];
    worker.received.clear();
  }

  // Returns how the worker ended.
  static std::string stop(Worker& worker) {
    if (worker.process < 0) return "";
    close(worker.socket);
    const std::string failure = failure_of(status_at_end(worker.process));
    worker.process = worker.socket = -1;
    return failure;
  }

  // Returns false if there are no more tasks.
  bool give_task(Worker& worker) {
    if (worker.later.empty())
      for (int i = 0; i < pool_.in_a_row && more_; ++i) take(worker);
    if (worker.later.empty()) {
      stop(worker);
      return false;
    }
    worker.task = worker.later.front();
    worker.later.pop_front();
    if (worker.process < 0) start(worker);
    // A worker that has died meanwhile is found when its end of the socket is read.
    send_all(worker.socket, &worker.task, sizeof worker.task);
    return true;
  }

  void take(Worker& worker) {
    const std::int64_t task = pool_.next();
    more_ = task >= 0;
    if (more_) worker.later.push_back(task);
  }

  std::vector<TaskEnd> wait() {
    std::vector<pollfd> polled;
    for (const Worker& worker : workers_) polled.push_back({worker.socket, POLLIN, 0});
    if (poll(polled.data(), polled.size(), kMostIdleMs) <= 0) return {};
    std::vector<TaskEnd> ends;
    std::size_t i = 0;
    for (auto worker = workers_.begin(); worker != workers_.end(); ++i) {
      TaskEnd end{worker->task, {}, {}};
      if (polled[i].revents == 0 || !receive(*worker, end)) {
        ++worker;
        continue;
      }
      ends.push_back(std::move(end));
      worker = give_task(*worker) ? std::next(worker) : workers_.erase(worker);
    }
    return ends;
  }

  // Returns whether the worker's task has ended, with or without a result.
  static bool receive(Worker& worker, TaskEnd& end) {
    char buffer[1 << 16];
    const ssize_t n = recv(worker.socket, buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (n <= 0) {
      end.failure = stop(worker);
      if (end.failure.empty()) end.failure = "the simulation ended without a result";
      return true;
    }
    worker.received.append(buffer, static_cast<std::size_t>(n));
    Sizes sizes{};
    if (worker.received.size() < sizeof sizes) return false;
    std::memcpy(sizes.data(), worker.received.data(), sizeof sizes);
    if (worker.received.size() < sizeof sizes + sizes[0] + sizes[1]) return false;
    end.output = worker.received.substr(sizeof sizes, sizes[0]);
    end.failure = worker.received.substr(sizeof sizes + sizes[0], sizes[1]);
    worker.received.clear();
    return true;
  }

  const WorkerPool& pool_;
  bool more_ = true;
  std::list<Worker> workers_;
};

}  // namespace

void run(const WorkerPool& pool) {
  Workers(pool).run();
}

}  // namespace rehearse
