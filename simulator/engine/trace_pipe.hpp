// Sends a trace from a child process to its parent.
#pragma once

#include <string>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// Sends everything except `run`, which the parent has. Returns false if the other end is gone.
bool send_trace(const Trace& trace, int file);
bool send_failure(const std::string& message, int file);
// Returns whether a complete trace was received; sets `failure` if the child sent a failure instead.
bool receive_trace(int file, Trace& trace, std::string& failure);

}  // namespace rehearse
