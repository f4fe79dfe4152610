#include "backend/host/callers.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr double kIntroduction_s = 5;  // a rank sends its message at once
constexpr std::size_t kMostCallers = 4096;

}  // namespace

Callers::~Callers() {
  for (const Caller& caller : waiting_) close(caller.socket);
}

void Callers::accept_caller() {
  Caller caller;
  caller.socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (caller.socket < 0) return;  // it is gone again
  if (waiting_.size() >= kMostCallers) {
    close(caller.socket);
    return;
  }
  caller.since_s = monotonic_s();
  waiting_.push_back(std::move(caller));
}

Callers::State Callers::read_more(Caller& caller) const {
  char buffer[256];
  const std::size_t left = std::min(sizeof buffer, bytes_ - caller.came.size());
  const ssize_t n = recv(caller.socket, buffer, left, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? State::waits : State::wrong;
  if (n == 0) return State::wrong;
  caller.came.insert(caller.came.end(), buffer, buffer + n);
  const std::size_t known = std::min(magic_.size(), caller.came.size());
  if (std::memcmp(caller.came.data(), magic_.data(), known) != 0) return State::wrong;
  return caller.came.size() == bytes_ ? State::complete : State::waits;
}

std::pair<int, std::vector<char>> Callers::next(double patience_s, const std::string& what) {
  const double end_s = monotonic_s() + patience_s;
  std::vector<pollfd> waits;
  for (;;) {
    const double now_s = monotonic_s();
    if (now_s >= end_s) throw RunError(fmt::format("waited {} s for {}", patience_s, what));
    waits.assign(1, {listener_, POLLIN, 0});
    for (const Caller& caller : waiting_) waits.push_back({caller.socket, POLLIN, 0});
    const double look_s = waiting_.empty() ? end_s - now_s : std::min(end_s - now_s, 0.5);
    if (poll(waits.data(), waits.size(), static_cast<int>(look_s * 1000) + 1) < 0 && errno != EINTR)
      throw RunError(fmt::format("no connection accepted: {}", std::strerror(errno)));
    for (std::size_t i = waiting_.size(); i-- > 0;) {
      Caller& caller = waiting_[i];
      const State state = waits[i + 1].revents != 0 ? read_more(caller) : State::waits;
      const bool silent = state == State::waits && monotonic_s() - caller.since_s > kIntroduction_s;
      if (state == State::waits && !silent) continue;
      const Caller done = std::move(caller);
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      if (state == State::complete) return {done.socket, done.came};
      close(done.socket);
    }
    if (waits.front().revents != 0) accept_caller();
  }
}

}  // namespace rehearse
