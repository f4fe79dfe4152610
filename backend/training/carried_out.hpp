// Lists which ops the training workload carries out with numbers.
#pragma once

#include <string>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Returns the first op of the schedule whose action the workload does not carry out on an op of its kind, as
// a reason not to train; empty if there is none. Neglecting an action would train something else without a
// word.
std::string why_not_carried_out(const Schedule& schedule);

// Returns whether a bucket shares a layer with the bucket before it; gradients can only be summed by layer.
bool cuts_layers(const Scenario& scenario, const Schedule& schedule);

}  // namespace rehearse
