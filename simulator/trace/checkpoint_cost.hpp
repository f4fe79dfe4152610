// Computes what a checkpoint costs from the trace of steps that follow one.
#pragma once

#include "simulator/trace/trace.hpp"

namespace rehearse {

struct Metrics;

// What one checkpoint costs, in seconds.
struct CheckpointCost {
  double stall_s = 0;     // by which it delays training
  double blocked_s = 0;   // until training continues
  double written_s = 0;   // until the last rank has written its part to the last tier
  double interval_s = 0;  // from one checkpoint to the next, with the stall
  bool behind =
      false;  // writing takes longer than the steps between two checkpoints, so that training waits for it
};

// When the parts of a checkpoint ended, in seconds from the beginning of the repetition that it begins.
struct CheckpointTimes {
  double blocked_s = 0, written_s = 0;
  double trained_s = 0;  // end of the repetition's other ops
};

// Returns the times of the last repetition of job 0.
CheckpointTimes checkpoint_times(const Trace& trace);

// Adds to the figures of a step its share of a checkpoint after every `every` steps: to `other`, and to what
// follows from the step's time.
void add_checkpoint(Metrics& metrics, const CheckpointCost& cost, int every);

}  // namespace rehearse
