// Counts the ops of a schedule, which say how much work its simulation is.
#pragma once

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Returns the number of ops of all programs; repeated ops count once.
double ops_of(const Schedule& schedule);

}  // namespace rehearse
