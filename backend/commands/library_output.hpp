// Separates the output of libraries from the result.
#pragma once

namespace rehearse {

// Redirects standard output to standard error while it exists: libraries print to standard output (NCCL does
// if NCCL_DEBUG is set), and a program that reads our result must find nothing else there.
class OutputToErrors {
public:
  OutputToErrors();
  ~OutputToErrors();
  OutputToErrors(const OutputToErrors&) = delete;
  OutputToErrors& operator=(const OutputToErrors&) = delete;

private:
  int output_ = -1;  // the original standard output; -1: it is closed
};

}  // namespace rehearse
