// `rehearse-run run`: carries out a scenario by real ranks and records what happened.
#pragma once

#include <iosfwd>
#include <string>

#include "backend/run_result.hpp"

namespace rehearse {

struct RunArguments : ScenarioArguments {
  std::string transport = "auto";  // mpi, tcp, local; auto: by the environment
  std::string device = "cpu";      // cpu, gpu; auto: GPUs if each rank has one of its own
  bool oversubscribe = false;      // several ranks may share a GPU
  bool kernels = false;            // GPUs' kernels are recorded as well
  bool nccl_choices = false;       // NCCL's algorithms, protocols and channels are recorded as well
};

// Under mpirun, srun, and with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT each process is a rank
// (backend/host/started.hpp); else all ranks are started here, on this machine. Rank 0 writes the result.
void run_run(const RunArguments& arguments, std::istream& in, std::ostream& out);

}  // namespace rehearse
