// The memory that a scenario needs, without a simulation.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns the bytes of the worker that needs most, as peak_worker_bytes() does for the scenario's schedule.
// Most schedules store no more for more micro-batches once the pipeline is full, so that a few suffice to
// know. Throws InputError or RunError if the scenario has no schedule.
double worker_bytes_of(const Scenario& scenario);

}  // namespace rehearse
