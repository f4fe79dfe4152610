// Determines from the environment what started this process as one rank of several, and where the others are.
#pragma once

#include <functional>

#include "backend/host/tcp_transport.hpp"

namespace rehearse {

using Environment = std::function<const char*(const char* name)>;  // like std::getenv
const char* process_environment(const char* name);

enum class Starter {
  none,       // this process is alone
  mpi,        // mpirun, or Slurm starting an MPI (srun --mpi=pmix)
  variables,  // torchrun and similar launchers, or Slurm alone: ranks join by TCP
};
// Checks, in this order: mpirun's variables; WORLD_SIZE; variables that Slurm and others set for an MPI, if
// this build has MPI; an srun step of several tasks. (A batch script is never such a step, whatever it
// requested, and a shell that srun started is alone.)
Starter starter_of_process(bool with_mpi, const Environment& get = process_environment);

// Returns whether this process is the first of an MPI's ranks; may be called before MPI is initialized.
bool is_first_of_mpi(const Environment& get = process_environment);

// Reads RANK, WORLD_SIZE, MASTER_ADDR (default 127.0.0.1) and MASTER_PORT (default 29500) as torchrun sets
// them. If neither RANK nor WORLD_SIZE is set and srun started several tasks, uses Slurm's variables: the
// first machine of the step, and a port derived from the job and step numbers; MASTER_ADDR and MASTER_PORT
// take precedence over these. Throws InputError if a variable is missing or not a number.
TcpOptions ranks_of_environment(const Environment& get = process_environment);

// Returns the first name of a list in Slurm's format: "n7" for "n[7-9,12],m1".
std::string first_of_hostlist(const std::string& list);

}  // namespace rehearse
