// Bounds the size of a schedule before it is written.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns at least the number of ops (ops_of()) of the workers' programs, without writing them: often several
// times as many. Strategies with timers, or servers, may have further ones.
double most_ops_of(const Scenario& scenario);

}  // namespace rehearse
