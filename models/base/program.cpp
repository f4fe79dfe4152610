#include "models/base/program.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

#include "models/base/error.hpp"

namespace rehearse {

int run_program(const std::string& name, const std::function<int()>& run) {
  // A closed pipe is told by the failing write, as any other output error.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int status = run();
    errno = 0;
    if (!std::cout.flush()) {
      std::cerr << name << ": standard output cannot be written"
                << (errno != 0 ? std::string(": ") + std::strerror(errno) : "") << '\n';
      return kRunFailed;
    }
    return status;
  } catch (const InputError& error) {
    std::cerr << std::string(error.what()) + '\n';  // whole, where several processes write
    return kInputWrong;
  } catch (const std::exception& error) {
    std::cerr << name + ": " + error.what() + '\n';
    return kRunFailed;
  }
}

}  // namespace rehearse
