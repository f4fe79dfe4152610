// Decides from the command line where a run continues, and where it writes checkpoints.
#pragma once

#include <iosfwd>
#include <optional>

#include "backend/commands/run_result.hpp"
#include "backend/runs/checkpoints.hpp"

namespace rehearse {

// Returns nothing without --checkpoints. Takes the steps that were done before from the scenario's [run].
// Throws InputError if the scenario does not say how often to write, if the folder's checkpoints are of
// another training, or if no step is left.
std::optional<CheckpointPlan> plan_checkpoints(const ScenarioArguments& arguments, Scenario& scenario,
                                               const Schedule& schedule);

}  // namespace rehearse
