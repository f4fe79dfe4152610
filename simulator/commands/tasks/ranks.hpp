// Determines which of several processes this one is, according to the launcher.
#pragma once

namespace rehearse {

struct Ranks {
  long rank = 0, size = 1;
};

// Reads the rank from the environment that Open MPI, MPICH and its derivatives, or Slurm's srun give a
// process; returns rank 0 of 1 if there is none.
Ranks ranks_of_this_run();

}  // namespace rehearse
