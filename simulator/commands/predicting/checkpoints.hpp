// Predicts what the checkpoints of a scenario cost.
#pragma once

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

// Adds to a prediction without checkpoints what those of its scenario cost; nothing if it writes none.
// Simulates in children: the steps between two checkpoints if they are few, otherwise those beside which one
// is written, or with blocking checkpoints the step after it.
enum class StepsBeside { whole, few_microbatches };  // may a blocking checkpoint precede a shorter step?
void add_checkpoints(Prediction& prediction, const WatchPrediction& watch, StepsBeside steps);

}  // namespace rehearse
