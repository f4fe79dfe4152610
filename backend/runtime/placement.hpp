// Which rank sits where: what ranks tell each other to find their own devices.
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Every rank's text, by rank, at every rank; all ranks call it.
std::vector<std::string> all_gather(Transport& transport, const std::string& own);

// What tells this machine from others; the same for all ranks that run on it.
std::string machine_name();

// What a rank knows of its place.
struct RankPlace {
  std::string machine;
  std::string local_rank;  // what it was started with: a number; empty if nothing was said
};
// With the local rank that mpirun, torchrun or Slurm give in the environment.
RankPlace place_of_process();

// The number of `rank` among those on its machine: as they were started if that tells them apart, else
// counted in the order of ranks.
int local_rank(const std::vector<RankPlace>& places, int rank);
// The same, from all ranks' places by way of the transport; all ranks call it.
int local_rank(Transport& transport);

// What a run on several machines must say if they are not the scenario's nodes: by rank, the node where the
// scenario has it ("node3"), and its machine as machine_name() tells it. Empty if all ran on one machine.
std::vector<std::string> placement_notes(const std::vector<std::string>& nodes,
                                         const std::vector<std::string>& machines);

// How many at most have the same text; empty ones do not count.
int most_alike(const std::vector<std::string>& texts);

}  // namespace rehearse
