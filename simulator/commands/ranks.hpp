// Which of several processes this one is, as the launcher says.
#pragma once

namespace rehearse {

struct Ranks {
  long rank = 0, size = 1;
};

// From the environment that Open MPI, MPICH and its kin, or Slurm's srun give a process; else rank 0 of 1.
Ranks ranks_of_this_run();

}  // namespace rehearse
