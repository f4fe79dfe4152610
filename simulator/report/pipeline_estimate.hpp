// What a pipeline's schedule costs on a free network, without an engine: to choose one in a way out.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct PipelineEstimate {
  bool possible = false;  // the layers and micro-batches suffice
  double compute_s = 0;   // of a step, transfers free: m v + p - 1 slots as long as the slowest part's passes
  double fullest_bytes =
      0;  // of the stage that needs most: its parameters' state and the activations it keeps
};

// The scenario's pipeline with this schedule and number of chunks a stage, its layers balanced by time.
PipelineEstimate estimate_pipeline(const Scenario& scenario, PipelineSchedule schedule, int chunks);

}  // namespace rehearse
