// Scenarios with fewer micro-batches, whose steps are cheaper to write and to simulate.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns the scenario with this number of micro-batches, each as large as before.
Scenario with_microbatches(const Scenario& scenario, int microbatches);

// Extrapolates a figure linearly from steps of `few` and of `more` micro-batches to one of `all`.
struct Extrapolation {
  double few = 0, more = 0, all = 0;
  double operator()(double at_few, double at_more) const;
};

}  // namespace rehearse
