// Starts the built program in the background, so that a test can stop it at any moment.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace rehearse::test {

// Starts `words`, the program and its arguments. Its output goes to the file `out`; errors are discarded.
inline pid_t start_program(std::vector<std::string> words, const std::string& out = "/dev/null") {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) _exit(127);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  return child;
}

// While an object lives, descendants that lose their parent become children of this process.
class TakesOrphans {
public:
  TakesOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  TakesOrphans(const TakesOrphans&) = delete;
  TakesOrphans& operator=(const TakesOrphans&) = delete;
  ~TakesOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
  // Returns true once all children of this process have ended; false after 20 s.
  bool all_are_gone() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      const pid_t ended = waitpid(-1, nullptr, WNOHANG);
      if (ended < 0 && errno == ECHILD) return true;
      if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

}  // namespace rehearse::test
