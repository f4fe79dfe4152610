// Joins ranks started by mpirun or Slurm: messages are sent with MPI, over any network that it supports.
#pragma once

#include <memory>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Initializes MPI at the first call and finalizes it with the transport; after a failure, aborts all ranks
// (MPI_Abort) instead. Throws RunError if MPI does not let several threads call it.
std::unique_ptr<Transport> join_mpi(double patience_s);

}  // namespace rehearse
