// Ranks as child processes of this one, joined by TCP; none outlives it.
#pragma once

#include <functional>
#include <string>

#include "backend/host/tcp_transport.hpp"

namespace rehearse {

struct LaunchOptions {
  int ranks = 1;
  // Called in the child of each rank before it does anything else: to move it into a network namespace, say.
  std::function<void(int rank)> enter;
  // Where rank 0 listens, seen from the others; empty: a free port of this machine.
  std::string first_address;
  int first_port = 29500;
  double patience_s = 60;
  int buffer_bytes = 0;    // TcpOptions
  std::string congestion;  // TcpOptions
};

// Starts the ranks, each of which calls `body` with its transport, and returns when all are done. RunError
// (InputError if a rank says so) with the cause if one fails, is killed, or if this process is interrupted;
// all are stopped then. Children end with this process, also when it is killed. Call it before any thread is
// started.
void launch(const LaunchOptions& options, const std::function<void(Transport&)>& body);

}  // namespace rehearse
