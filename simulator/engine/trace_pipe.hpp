// A trace on its way from a child process to its parent.
#pragma once

#include <string>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// Everything but `run`, which the parent has. False if the other end is gone.
bool send_trace(const Trace& trace, int file);
bool send_failure(const std::string& message, int file);
// False if what came is not whole; `failure` is set if the child sent one.
bool receive_trace(int file, Trace& trace, std::string& failure);

}  // namespace rehearse
