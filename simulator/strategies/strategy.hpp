// From a scenario to a schedule. One file per strategy writes its part; nothing here simulates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// The schedule of one step and where its ranks sit.
struct Plan {
  std::shared_ptr<const Schedule> schedule;
  std::vector<int> endpoints;      // by rank over all roles
  std::vector<int> stage_layers;   // layers of each pipeline stage; interleaved: of each model part, in order
  std::vector<std::string> notes;  // assumptions worth telling, one sentence each
};

// InputError if the scenario cannot be planned (more stages than layers).
Plan write_schedule(const Scenario& scenario);

}  // namespace rehearse
