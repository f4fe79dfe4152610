// Evaluates a run whose steps differ by chance.
#pragma once

#include "simulator/trace/metrics.hpp"

namespace rehearse {

// Cuts the trace behind the step of median time and returns that step's figures, with the times and rates of
// the mean of the last `steps` steps, and their distribution.
Metrics evaluate_jittered(Trace& trace, const Scenario& scenario, const Plan& plan, int steps);

}  // namespace rehearse
