// Averages figures of asynchronous workers over simulations that differ in when the workers begin.
#pragma once

#include <vector>

#include "simulator/trace/metrics.hpp"

namespace rehearse {

// Returns the mean over the simulations `phases`, all with equal weight: the step time is the mean of their
// step times, and a rate is their mean weighted by step time, so that rates times the step time still add up
// to a step. Staleness is counted over all of them; `asynchrony->phases` has the spread of the step time.
// `phases` must not be empty and must have the same scenario; `trace` is from any of them (only its schedule
// is used, not its spans).
Metrics mean_over_phases(const std::vector<Metrics>& phases, const Trace& trace, const Cluster& cluster);

}  // namespace rehearse
