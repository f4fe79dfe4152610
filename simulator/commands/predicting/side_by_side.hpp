// Computes the step times of several simulations in parallel.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rehearse {

// Returns the number of processors of this machine, at least 1.
int processors();

// Returns the result of each run, in seconds. Each run is computed in a separate process, `jobs` at once.
// Calls `ended(some, all)`, if given, with the progress. Throws RunError if a run fails.
std::vector<double> step_times(const std::vector<std::function<double()>>& runs, int jobs,
                               const std::function<void(std::size_t, std::size_t)>& ended = {});

}  // namespace rehearse
