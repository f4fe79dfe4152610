// Joins the ranks of a run, whatever started them.
#pragma once

#include <functional>
#include <string>

#include "backend/runtime/transport.hpp"

namespace rehearse {

struct JoinOptions {
  // "mpi", "tcp", "local"; "auto": depends on what started this process (started.hpp).
  std::string transport = "auto";
  int ranks = 1;  // local: the number of ranks to start
  double patience_s = 60;
};

// Returns "mpi", "tcp" or "local". Throws InputError if this build does not support the requested transport.
std::string choose_transport(const JoinOptions& options);

// Returns whether this process will be rank 0 of the ranks that `transport` ("mpi" or "tcp") joins.
bool will_be_first(const std::string& transport);

// Calls `body` with a transport in each rank's process: in this process or, if this process starts all ranks,
// in child processes (see launch()). Throws InputError or RunError, including those of `body`; under MPI all
// processes are aborted then. Must be called before any thread is started.
void with_ranks(const JoinOptions& options, const std::function<void(Transport&)>& body);

}  // namespace rehearse
