// Ranks started by mpirun or Slurm: messages go through MPI, by whatever network it knows.
#pragma once

#include <memory>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// MPI is initialised by the first call and finalised with the transport; after a failure all ranks are
// aborted (MPI_Abort) instead. RunError if MPI does not let several threads call it.
std::unique_ptr<Transport> join_mpi(double patience_s);

}  // namespace rehearse
