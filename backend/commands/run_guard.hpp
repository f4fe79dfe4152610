// Refuses, before any rank is started, what this machine or this scenario cannot carry to its end.
#pragma once

#include <string>

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {

// What a run takes of the machine that starts all of its ranks.
struct RunNeeds {
  int ranks = 0;
  double bytes = 0;  // of all ranks together
};
// What the machine has.
struct MachineRoom {
  int cores = 1;
  double free_bytes = 0;  // 0: unknown
};

// Estimates the memory of all ranks: each is a process, which trains tensors of its program (all of a step's
// are kept) or, if `trained` is false, has buffers of its largest messages.
RunNeeds needs_of(const Plan& plan, bool trained);
MachineRoom room_here();

// Returns why the machine has no room for the run, with its numbers; empty: it has. Ranks whose computation
// is timed only sleep, so more of them fit.
std::string why_no_room(const RunNeeds& needs, const MachineRoom& room, RealRun::Compute compute);

// Throws InputError if the machine has no room, unless `oversubscribe`.
void refuse_crowding(const Scenario& scenario, const Plan& plan, bool oversubscribe);

// Throws InputError or RunError if the record cannot be written to `path`: its folder is missing or
// read-only, its disk is full, or it is a file that is no record. Empty: no record is wanted.
void refuse_unwritable_record(const std::string& path, const Scenario& scenario, const Plan& plan);

// Throws InputError if the vocabulary cannot be divided by the tensor ranks, which simulations allow.
void refuse_uneven_vocabulary(const Scenario& scenario);

}  // namespace rehearse
