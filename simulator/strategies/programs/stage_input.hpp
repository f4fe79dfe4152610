// Plans how the first pipeline stage gets its batches, if the scenario says what its input is.
#pragma once

#include <optional>

#include "simulator/input/batch_loader.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct StepPlan;

// Returns how the workers load their batches; nothing if the scenario does not say what its input is, or if
// it takes no time. Adds a mesh to the workers if they read from different storage.
std::optional<BatchLoader> plan_input(const Scenario& scenario, Role& workers);

// Returns how often a schedule of `steps` optimizer steps is written in a row, so that batches are loaded in
// the same way when it repeats; 1 without input that takes time.
int rounds_of_input(const Scenario& scenario, int steps);

// Samples/s of all ranks together that their workers can load, and that the storage can deliver; infinity if
// that takes no time. The devices train the least of these and of what they compute.
struct InputRates {
  BatchLoading loading;  // of a micro-batch
  double workers = 0, storage = 0;
  double storage_bytes_per_s = 0;  // of all storage that is read; 0: none is
};
InputRates input_rates(const Scenario& scenario);

// Returns the rank of one of the cluster's storages that each rank uses: that of its node, or the servers in
// turn. May add a mesh to the role, whose ranks are on devices in order if the storage is local.
Quantity storage_of_ranks(const Cluster& cluster, Role& role, int which);

// Adds a role for each storage that ops read from or write to, and names it in their messages.
void add_storages(StepPlan& plan);

// Completes a schedule of which all programs are written: repeats it rounds_of_input() times, connects the
// ops that load batches. Throws InputError if asynchronous workers would
// need several rounds.
void complete_input(StepPlan& plan);

}  // namespace rehearse
