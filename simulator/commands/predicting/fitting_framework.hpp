// Says what the framework preset that fits a scenario without one would change.
#pragma once

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

// Returns whether the scenario names a framework, or "none", or has costs of its own.
bool has_framework(const Scenario& scenario);

// Adds a note with the framework presets that fit the job (newest first), if the newest changes the step time
// by more than 3 %: it is simulated in a child process, unless the prediction took too many events to do so.
// Nothing is added where the scenario names a framework or has its costs, where training.framework is "none",
// or where the protocol is not NCCL's. `prediction` must have been made in a child.
void tell_fitting_frameworks(Prediction& prediction, const WatchSimulation& watch = {});

}  // namespace rehearse
