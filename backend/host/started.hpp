// What started this process as one rank of several, and where it finds the others, told by the environment.
#pragma once

#include <functional>

#include "backend/host/tcp_transport.hpp"

namespace rehearse {

using Environment = std::function<const char*(const char* name)>;  // as std::getenv
const char* process_environment(const char* name);

enum class Starter {
  none,       // this process is alone
  mpi,        // mpirun, or Slurm for an MPI (srun --mpi=pmix)
  variables,  // torchrun and its like, or Slurm by itself: ranks join by TCP
};
// In this order: mpirun's own variables; WORLD_SIZE; what Slurm and others set for an MPI, where one was
// built in; a step of several tasks of srun's. (A batch script is no such step, whatever it asked for, and a
// shell that srun started is alone.)
Starter starter_of_process(bool with_mpi, const Environment& get = process_environment);

// Among the ranks of an MPI, before it is initialised.
bool is_first_of_mpi(const Environment& get = process_environment);

// RANK, WORLD_SIZE, MASTER_ADDR (127.0.0.1) and MASTER_PORT (29500) as torchrun sets them. Where neither RANK
// nor WORLD_SIZE is set and srun started several tasks, what Slurm says: the first machine of the step, and a
// port that follows from the numbers of job and step; MASTER_ADDR and MASTER_PORT come before these.
// InputError if a variable is missing or not a number.
TcpOptions ranks_of_environment(const Environment& get = process_environment);

// The first name of a list as Slurm writes it: "n7" of "n[7-9,12],m1".
std::string first_of_hostlist(const std::string& list);

}  // namespace rehearse
