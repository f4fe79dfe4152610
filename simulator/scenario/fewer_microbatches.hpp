// Scenarios with fewer micro-batches, whose steps are cheaper to write and to simulate.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns the scenario with this number of micro-batches, each as large as before.
Scenario with_microbatches(const Scenario& scenario, int microbatches);

}  // namespace rehearse
