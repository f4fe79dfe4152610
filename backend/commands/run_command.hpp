// Declares `rehearse-run run`, which runs a scenario with real ranks and records what happens.
#pragma once

#include <iosfwd>
#include <string>

#include "backend/commands/run_result.hpp"

namespace rehearse {

struct RunArguments : ScenarioArguments {
  std::string transport = "auto";  // mpi, tcp, local, or auto: depends on the environment
  std::string device = "cpu";      // cpu, gpu, or auto: GPUs if each rank has a separate one
  bool kernels = false;            // also records the GPUs' kernels
  bool nccl_choices = false;       // also records NCCL's algorithms, protocols and channels
};

// Under mpirun, under srun, and with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, each process is a rank
// (backend/host/started.hpp); otherwise this process starts all ranks on this machine. Rank 0 writes the
// result.
void run_run(const RunArguments& arguments, std::istream& in, std::ostream& out);

}  // namespace rehearse
