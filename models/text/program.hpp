// What the main functions of all programs have in common.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace rehearse {

inline constexpr int kDone = 0, kRunFailed = 1, kInputWrong = 2;  // exit statuses

// The reader of standard output has gone: there is nobody to go on for. The program ends quietly, with exit
// status 0, as nothing has gone wrong with what was read.
class ReaderGone : public std::exception {
public:
  const char* what() const noexcept override { return "nobody reads standard output"; }
};

// Calls `run`, which returns the exit status. An error that it throws, and one of writing to standard output,
// is printed on standard error. Standard output and standard error escape control characters meanwhile.
int run_program(const std::string& name, const std::function<int()>& run);

}  // namespace rehearse
