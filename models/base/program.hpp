// What the main functions of all programs have in common.
#pragma once

#include <functional>
#include <string>

namespace rehearse {

inline constexpr int kDone = 0, kRunFailed = 1, kInputWrong = 2;  // exit statuses

// Calls `run`, which returns the exit status; an error it throws, or that standard output cannot be written,
// is told on standard error in the name of the program.
int run_program(const std::string& name, const std::function<int()>& run);

}  // namespace rehearse
