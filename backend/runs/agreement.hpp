// Checks that ranks which others have started (mpirun, torchrun, Slurm) carry out the same scenario.
#pragma once

#include <string>

#include "backend/runtime/transport.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// What must be the same on all ranks.
struct RankIntent {
  std::string version;   // of the program
  std::string scenario;  // Scenario::text
  std::string options;   // of the command line, as far as they change what ranks do
};

// Returns how another rank's intent differs from that of rank 0: the first keys that differ, with both
// values. Empty: it does not.
std::string difference(const RankIntent& first, const RankIntent& other, int rank);

// All ranks throw it together, with the same text, so none of them has to stop the others.
struct DifferentScenarios : InputError {
  using InputError::InputError;
};

// Compares the intents of all ranks, which must all call it before anything else of the run. Throws
// DifferentScenarios if one differs from that of rank 0.
void agree(Transport& transport, const RankIntent& own);

}  // namespace rehearse
