// Estimates what a pipeline's schedule costs on a network without cost, without an engine, to choose a
// schedule to advise.
#pragma once

#include <string>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct PipelineEstimate {
  bool possible = false;  // the layers and micro-batches suffice
  double compute_s = 0;   // of a step without transfers: m v + p - 1 slots of the slowest part's duration
  double fullest_bytes =
      0;  // of the stage that needs most: its parameters' state and the activations it retains
};

// Estimates the scenario's pipeline with this schedule and number of chunks per stage, its layers balanced by
// time.
PipelineEstimate estimate_pipeline(const Scenario& scenario, PipelineSchedule schedule, int chunks);

// How many slots of a stage are idle, and how many it has, if stages are equal and transfers take no time. A
// slot is the forward and backward pass of one micro-batch through one model part. If backward passes are
// split, a slot is a single pass: forward, backward-input or backward-weight, which are then assumed to take
// equally long.
struct Slots {
  double idle = 0, all = 0;
  bool are_passes = false;
};
Slots slots_of(PipelineSchedule schedule, int stages, int microbatches, int chunks);
// Returns "3 of 11 slots idle", "3 of 27 equal passes idle" or "none of 24 equal passes idle", for example.
std::string idle_slots(const Slots& slots);

}  // namespace rehearse
