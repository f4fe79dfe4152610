// Says how a process of a simulation ended.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rehearse {

// Waits for a child of this process, and returns its status.
inline int status_at_end(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Returns how a child ended that should have sent a result; empty if it ended normally.
inline std::string failure_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("the simulation was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) != 0 ? "the simulation ended without a result" : "";
}

}  // namespace rehearse
