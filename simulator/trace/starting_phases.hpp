// Figures of asynchronous workers as means over simulations that differ in when the workers begin.
#pragma once

#include <vector>

#include "simulator/trace/metrics.hpp"

namespace rehearse {

// Each simulation counts as much as the others: the step time is the mean of theirs, and a rate is the mean
// of theirs weighted by step time, so that rates times the step time still add up to a step. Staleness is
// counted over all of them; the spread of the step time stands in `asynchrony->phases`. `phases` must not be
// empty, each of the same scenario; `trace` is one of theirs (its schedule is read, and no span).
Metrics mean_over_phases(const std::vector<Metrics>& phases, const Trace& trace, const Cluster& cluster);

}  // namespace rehearse
