// Computes the factors by which a schedule splits its layers.
#pragma once

#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

// Returns the factors of all axes, the outermost first. Gradients are summed over those with sums_gradients,
// just as over the ranks that share a batch.
std::vector<Factor> schedule_factors(const Scenario& scenario);

}  // namespace rehearse
