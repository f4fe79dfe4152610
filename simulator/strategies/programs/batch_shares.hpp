// Gives replicas of different speed different shares of each micro-batch.
#pragma once

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// With strategy.batch_by = "speed", replica r trains b(r) of the `micro_batch` x `data` samples of a
// micro-batch, as divide_samples() says: changes what its ops compute and send, and what its activations
// take. The step still trains the same samples. With the mean gradient g(r) of its samples, replica r
// contributes b(r) / (micro_batch x data) x g(r) to the sum, which is the mean gradient of all samples
// (as in LB-BSP), so that the bytes that are summed stay the same. Does nothing otherwise.
void divide_batch(StepPlan& plan);

}  // namespace rehearse
