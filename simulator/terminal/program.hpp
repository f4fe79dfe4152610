// Provides what the main functions of all programs share.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace rehearse {

inline constexpr int kDone = 0, kRunFailed = 1, kInputWrong = 2;  // exit statuses

// Thrown when the reader of standard output is gone, so that continuing is pointless. The program ends
// quietly with exit status 0, because nothing went wrong with what was read.
class ReaderGone : public std::exception {
public:
  const char* what() const noexcept override { return "the reader of standard output is gone"; }
};

// Calls `run`, which returns the exit status. Prints errors that it throws, and errors writing to standard
// output, on standard error. Meanwhile, standard output and standard error escape control characters.
int run_program(const std::string& name, const std::function<int()>& run);

}  // namespace rehearse
