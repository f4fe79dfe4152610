#include "backend/commands/library_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace rehearse {

OutputToErrors::OutputToErrors() {
  (void)std::fflush(stdout);
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (output_ >= 0) (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

OutputToErrors::~OutputToErrors() {
  (void)std::fflush(stdout);  // what libraries have buffered
  if (output_ < 0) return;
  (void)dup2(output_, STDOUT_FILENO);
  (void)close(output_);
}

}  // namespace rehearse
