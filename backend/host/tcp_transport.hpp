// Joins ranks by TCP, with a connection for each channel, so that no message waits behind another one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "backend/runtime/transport.hpp"

namespace rehearse {

struct TcpOptions {
  int rank = 0, ranks = 1;
  std::string first_address = "127.0.0.1";  // of rank 0, name or IP address: MASTER_ADDR
  int first_port = 29500;                   // MASTER_PORT
  int first_listener = -1;                  // rank 0: a socket that already listens there
  double patience_s = 60;                   // longest time without a byte while waiting
  int buffer_bytes = 0;                     // of each socket and direction; 0: system default
  std::string congestion;                   // "cubic", "reno"; empty: system default
};

// Rank 0 listens at the address; all others connect to it. Throws RunError if the ranks do not find each
// other within the patience.
std::unique_ptr<Transport> join_tcp(const TcpOptions& options);

// A socket that listens on a free port, on all addresses.
struct Listener {
  int socket = -1, port = 0;
};
Listener listen_anywhere(int port = 0);

}  // namespace rehearse
