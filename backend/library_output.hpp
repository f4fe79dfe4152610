// Keeps what libraries print apart from the result.
#pragma once

namespace rehearse {

// While it lives, standard output goes to standard error: libraries print there (NCCL what NCCL_DEBUG asks
// for), and a program that reads our result must find nothing else.
class OutputToErrors {
public:
  OutputToErrors();
  ~OutputToErrors();
  OutputToErrors(const OutputToErrors&) = delete;
  OutputToErrors& operator=(const OutputToErrors&) = delete;

private:
  int output_ = -1;  // where standard output goes otherwise; -1: it is closed
};

}  // namespace rehearse
