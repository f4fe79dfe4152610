// What ranks that others have started (mpirun, torchrun, Slurm) leave of a run that fails: a process beside
// rank 0 outlives it and writes it down.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backend/run_result.hpp"

namespace rehearse {

class RecordKeeper {
public:
  // In the process that will be rank 0, before it has threads or joins the others. Does nothing where no
  // record is wanted. The keeper waits for the end of this process in a session of its own, so that who ends
  // the ranks does not end it too; it writes what all of them had finished unless rank 0 got the whole
  // result, says so on standard error, and ends.
  void start(const RunOutput& output, const Scenario& scenario, const Plan& plan,
             const Measurement& measurement);
  // To be called by all ranks: the journal that they share, for run_rank(). Null if there is no keeper, or if
  // not all ranks run on one machine.
  Journal* share(Transport& transport, const Scenario& scenario, const Plan& plan);

private:
  std::unique_ptr<Journal> journal_;
};

}  // namespace rehearse
