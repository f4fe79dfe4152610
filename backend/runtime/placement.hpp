// Determines where each rank runs, from texts that the ranks exchange, so that each rank finds its devices.
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Returns the texts of all ranks, by rank, at every rank. All ranks must call it.
std::vector<std::string> all_gather(Transport& transport, const std::string& own);

// Returns a name that distinguishes this machine from others and is the same for all ranks on it.
std::string machine_name();

// The machine and the local rank of a process.
struct RankPlace {
  std::string machine;
  std::string local_rank;  // as set by the launcher: a number; empty if it set none
};
// Reads the local rank that mpirun, torchrun or Slurm set in the environment.
RankPlace place_of_process();

// Returns the number of `rank` among the ranks on its machine: the launcher's local rank if these differ from
// each other, else a count in order of ranks.
int local_rank(const std::vector<RankPlace>& places, int rank);
// Like the overload above, but collects the places of all ranks over the transport. All ranks must call it.
int local_rank(Transport& transport);

// Returns the notes of a run on several machines that do not match the scenario's nodes. `nodes` has the
// scenario's node of each rank ("node3"), `machines` its machine as machine_name() returns it. Empty if all
// ranks ran on one machine.
std::vector<std::string> placement_notes(const std::vector<std::string>& nodes,
                                         const std::vector<std::string>& machines);

// Returns the largest number of texts that are equal; empty texts do not count.
int most_alike(const std::vector<std::string>& texts);

}  // namespace rehearse
