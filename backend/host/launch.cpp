#include "backend/host/launch.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <vector>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

volatile std::sig_atomic_t interrupted = 0;
void note_signal(int number) {
  interrupted = number;
}

// Signals by which a run is ended, and that the process can still react to.
constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGABRT, SIGXCPU};

// Records these signals while it exists, except those that the process ignores, as under nohup.
class SignalNotes {
public:
  SignalNotes() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
      sigaction(kEndingSignals[i], &action, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) sigaction(kEndingSignals[i], &before_[i], nullptr);
    }
  }
  ~SignalNotes() {
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i)
      sigaction(kEndingSignals[i], &before_[i], nullptr);
  }
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;
  // For a child: ends it as it would have ended this process before.
  static void forget() {
    for (const int number : kEndingSignals) {
      struct sigaction now {};
      sigaction(number, nullptr, &now);
      if (now.sa_handler == note_signal) std::signal(number, SIG_DFL);
    }
  }

private:
  std::array<struct sigaction, kEndingSignals.size()> before_{};
};

struct Child {
  pid_t pid = -1;
  int said = -1;  // pipe on which it reports why it failed
  bool ended = false;
};

[[noreturn]] void be_rank(const LaunchOptions& options, int rank, int listener, int port, int say,
                          const std::function<void(Transport&)>& body) {
  int status = 1;
  std::string why;
  try {
    if (options.enter) options.enter(rank);
    TcpOptions tcp;
    tcp.rank = rank;
    tcp.ranks = options.ranks;
    tcp.first_address = options.first_address.empty() ? "127.0.0.1" : options.first_address;
    tcp.first_port = port;
    tcp.first_listener = rank == 0 ? listener : -1;
    tcp.patience_s = options.patience_s;
    tcp.buffer_bytes = options.buffer_bytes;
    tcp.congestion = options.congestion;
    body(*join_tcp(tcp));
    status = 0;
  } catch (const InputError& error) {
    why = std::string("i") + error.what();
  } catch (const std::exception& error) {
    why = std::string("r") + error.what();
  }
  if (!std::cout.flush() && status == 0) {
    status = 1;
    why = "rstandard output cannot be written";
  }
  std::fflush(nullptr);
  if (!why.empty() && write(say, why.data(), std::min<std::size_t>(why.size(), PIPE_BUF)) < 0) status = 1;
  _exit(status);
}

class Family {
public:
  explicit Family(const LaunchOptions& options) : options_(options) {}
  ~Family() {
    kill_all();
    for (Child& child : children_) {
      if (!child.ended) waitpid(child.pid, nullptr, 0);
      close(child.said);
    }
  }

  void start(const std::function<void(Transport&)>& body) {
    Listener listener;
    listener.port = options_.first_port;
    if (options_.first_address.empty()) listener = listen_anywhere();
    const pid_t parent = getpid();
    std::cout.flush();
    std::fflush(nullptr);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) throw RunError(fmt::format("no pipe: {}", std::strerror(errno)));
      const pid_t pid = fork();
      if (pid < 0) throw RunError(fmt::format("rank {} cannot be started: {}", rank, std::strerror(errno)));
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);  // the parent died before prctl()
        SignalNotes::forget();
        close(ends[0]);
        for (const Child& older : children_) close(older.said);
        if (rank != 0 && listener.socket >= 0) close(listener.socket);
        be_rank(options_, rank, listener.socket, listener.port, ends[1], body);
      }
      close(ends[1]);
      children_.push_back({pid, ends[0]});
    }
    if (listener.socket >= 0) close(listener.socket);
  }

  // Returns when all ranks have ended successfully; otherwise throws the cause.
  void wait() {
    constexpr double kGrace_s = 2;  // for the others to notice a failure and report a better cause
    double failed_s = 0;
    while (std::any_of(children_.begin(), children_.end(), [](const Child& c) { return !c.ended; })) {
      if (interrupted != 0)
        throw RunError(fmt::format("interrupted by {}; all ranks are stopped", strsignal(interrupted)));
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid <= 0) {
        if (failed_s > 0 && monotonic_s() - failed_s > kGrace_s) break;
        usleep(2000);
        continue;
      }
      const auto child =
          std::find_if(children_.begin(), children_.end(), [&](const Child& c) { return c.pid == pid; });
      if (child == children_.end()) continue;
      child->ended = true;
      if (status == 0) continue;
      if (failed_s == 0) failed_s = monotonic_s();
      judge(static_cast<int>(child - children_.begin()), status, *child);
    }
    if (failed_s > 0) {
      if (input_wrong_) throw InputErrorFromRank(cause_);
      throw RunError(cause_);
    }
  }

private:
  // An InputError whose text already includes its location.
  struct InputErrorFromRank : InputError {
    explicit InputErrorFromRank(const std::string& text) : InputError({}, text) {}
  };

  // Ranks that were killed or report an original error are the cause; ranks that only lost their peer are
  // not.
  void judge(int rank, int status, const Child& child) {
    std::string said(PIPE_BUF, '\0');
    const ssize_t n = read(child.said, said.data(), said.size());
    said.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    int weight = 1;
    std::string cause;
    if (WIFSIGNALED(status)) {
      weight = 3;
      cause = fmt::format("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    } else if (said.size() > 1) {
      // A broken connection only echoes the end of the other rank; one that falls silent points to the
      // network.
      const bool echo = said.find("closed the connection") != std::string::npos ||
                        said.find("Connection reset") != std::string::npos ||
                        said.find("stopped because") != std::string::npos;
      weight = echo ? 1 : 2;
      cause = said[0] == 'i' ? said.substr(1) : fmt::format("rank {}: {}", rank, said.substr(1));
    } else {
      cause = fmt::format("rank {} ended with status {}", rank, WEXITSTATUS(status));
    }
    if (weight <= weight_) return;
    weight_ = weight;
    cause_ = cause;
    input_wrong_ = !said.empty() && said[0] == 'i';
  }

  void kill_all() {
    for (const Child& child : children_)
      if (!child.ended) kill(child.pid, SIGKILL);
  }

  const LaunchOptions& options_;
  std::vector<Child> children_;
  std::string cause_;
  int weight_ = 0;
  bool input_wrong_ = false;
};

}  // namespace

void launch(const LaunchOptions& options, const std::function<void(Transport&)>& body) {
  const SignalNotes notes;
  Family family(options);
  family.start(body);
  family.wait();
}

}  // namespace rehearse
