// The ranks of a run, whatever started them.
#pragma once

#include <functional>
#include <string>

#include "backend/runtime/transport.hpp"

namespace rehearse {

struct JoinOptions {
  std::string transport = "auto";  // mpi, tcp, local; auto: by what started this process (started.hpp)
  int ranks = 1;                   // local: so many are started here
  double patience_s = 60;
};

// "mpi", "tcp" or "local": what the options come to. InputError if this build does not have it.
std::string choose_transport(const JoinOptions& options);

// This process will be rank 0 of those that `transport` ("mpi" or "tcp") joins.
bool will_be_first(const std::string& transport);

// Calls `body` in each rank's process with its transport: in this one, or where all ranks are started here,
// in children (launch()). InputError and RunError, also those of `body`; under MPI all processes are aborted
// then. Call it before any thread is started.
void with_ranks(const JoinOptions& options, const std::function<void(Transport&)>& body);

}  // namespace rehearse
