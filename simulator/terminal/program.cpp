#include "simulator/terminal/program.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>

#include "models/text/error.hpp"
#include "simulator/terminal/terminal_stream.hpp"

namespace rehearse {
namespace {

// About four times what the deepest input takes (a scenario with 32 nested tables, a large trace).
constexpr rlim_t kLeastStackBytes = 512 * 1024;

// A stack overflow would end the program without a message.
void refuse_small_stack() {
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kLeastStackBytes) return;
  throw RunError(fmt::format("the stack is limited to {} KiB; allowed: at least {} KiB (ulimit -s)",
                             stack.rlim_cur / 1024, kLeastStackBytes / 1024));
}

int run_and_tell(const std::string& name, const std::function<int()>& run) {
  try {
    refuse_small_stack();
    return run();
  } catch (const InputError& error) {
    std::cerr << std::string(error.what()) + '\n';  // one string, because several processes can write here
    return kInputWrong;
  } catch (const ReaderGone&) {
    return kDone;
  } catch (const std::exception& error) {
    std::cerr << name + ": " + error.what() + '\n';
    return kRunFailed;
  }
}

}  // namespace

int run_program(const std::string& name, const std::function<int()>& run) {
  // Ignored, so that the failing write reports a closed pipe or a file that exceeds its limit (ulimit -f).
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  // Static, because a library can call exit() within `run`, which flushes the streams.
  static TerminalBuffer output(STDOUT_FILENO), errors(STDERR_FILENO);
  std::streambuf* const old_output = std::cout.rdbuf(&output);
  std::streambuf* const old_errors = std::cerr.rdbuf(&errors);
  int status = run_and_tell(name, run);
  if (!output.finish() && status == kDone) {
    std::cerr << fmt::format("{}: standard output cannot be written: {}\n", name,
                             std::strerror(output.error()));
    status = kRunFailed;
  }
  errors.finish();
  std::cout.rdbuf(old_output);
  std::cerr.rdbuf(old_errors);
  return status;
}

}  // namespace rehearse
