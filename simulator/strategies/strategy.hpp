// Turns a scenario into a schedule. Each strategy writes its part in its own file; this code does not
// simulate anything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// The schedule of one step and where its ranks are.
struct Plan {
  std::shared_ptr<const Schedule> schedule;
  std::vector<int> endpoints;      // by rank over all roles
  std::vector<int> stage_layers;   // layers of each pipeline stage; interleaved: of each model part, in order
  std::vector<std::string> notes;  // assumptions worth reporting, one sentence each
  CheckpointBytes checkpoint;      // if the scenario writes any
};

// Returns the scenario's schedule. Throws InputError if the scenario cannot be planned (for example, more
// stages than layers).
Plan write_schedule(const Scenario& scenario);
// Returns a schedule that begins with a checkpoint, and repeats the scenario's schedule.
Plan write_schedule(const Scenario& scenario, const CheckpointCycle& cycle);

// Returns how often the scenario's step (or round) is written in a row in its schedule, so that batches are
// loaded in the same way whenever that repeats.
int steps_in_schedule(const Scenario& scenario);

}  // namespace rehearse
