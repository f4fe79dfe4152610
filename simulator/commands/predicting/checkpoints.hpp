// Predicts what the checkpoints of a scenario cost.
#pragma once

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

// Whether a blocking checkpoint is simulated before a whole step, or before one with few micro-batches.
enum class StepsBeside { whole, few_microbatches };

// Adds the cost of the scenario's checkpoints to a prediction without them; does nothing if it writes none.
// Simulates in child processes: all steps between two checkpoints if they are few, otherwise those during
// which one is written; for blocking checkpoints, the step after one.
void add_checkpoints(Prediction& prediction, const WatchPrediction& watch, StepsBeside steps);

}  // namespace rehearse
