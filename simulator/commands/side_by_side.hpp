// Step times of several simulations, several at once.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rehearse {

// Processors of this machine; at least 1.
int processors();

// What each run returns, in seconds, each computed in a process of its own, `jobs` at once; `ended(some,
// all)` is told how far they are, if it is given. RunError if one of them fails.
std::vector<double> step_times(const std::vector<std::function<double()>>& runs, int jobs,
                               const std::function<void(std::size_t, std::size_t)>& ended = {});

}  // namespace rehearse
