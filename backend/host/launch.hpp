// Starts ranks as child processes of this one, joined by TCP; none outlives it.
#pragma once

#include <functional>
#include <string>

#include "backend/host/tcp_transport.hpp"

namespace rehearse {

struct LaunchOptions {
  int ranks = 1;
  // Called first in the child process of each rank, for example to move it into a network namespace.
  std::function<void(int rank)> enter;
  // The address on which rank 0 listens, as seen by the others; empty: a free port of this machine.
  std::string first_address;
  int first_port = 29500;
  double patience_s = 60;
  int buffer_bytes = 0;    // see TcpOptions
  std::string congestion;  // see TcpOptions
};

// Starts the ranks, each of which calls `body` with its transport, and returns when all are done. If a rank
// fails or is killed, or if this process is interrupted, stops all ranks and throws RunError (or the
// InputError that a rank reports) with the cause. Children end with this process, even if it is killed. Must
// be called before any thread is started.
void launch(const LaunchOptions& options, const std::function<void(Transport&)>& body);

}  // namespace rehearse
