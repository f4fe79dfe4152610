// Records failed runs whose ranks others have started (mpirun, torchrun, Slurm): a process beside rank 0
// outlives it and writes the record.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backend/commands/run_result.hpp"

namespace rehearse {

class RecordKeeper {
public:
  // Must be called in the process that will be rank 0, before it starts threads or joins the others. Does
  // nothing if no record is wanted. Otherwise forks the keeper, which waits for the end of this process in a
  // separate session, so that whoever ends the ranks does not end it too. Unless rank 0 got the complete
  // result, the keeper then records what all ranks had finished and says so on standard error.
  void start(const RunOutput& output, const Scenario& scenario, const Plan& plan,
             const Measurement& measurement);
  // Returns the journal that the ranks share, for run_rank(). All ranks must call it. Returns null if there
  // is no keeper, or if not all ranks run on one machine.
  Journal* share(Transport& transport, const Scenario& scenario, const Plan& plan);

private:
  std::unique_ptr<Journal> journal_;
};

}  // namespace rehearse
