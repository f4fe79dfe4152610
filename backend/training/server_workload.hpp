// Ranks without layers of their own: parameter servers, and the aggregators in front of them.
#pragma once

#include <memory>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Holds a share of each bucket's weights, and updates it with the sum of what is pushed, or asynchronously
// with each push.
std::unique_ptr<Workload> server_workload(const Scenario& scenario, const Schedule& schedule,
                                          const Wiring& wiring, int rank, Arithmetic& arithmetic);

// Adds up the gradients of a node's workers, and hands out the weights that come back.
std::unique_ptr<Workload> aggregator_workload(const Scenario& scenario, const Schedule& schedule,
                                              const Wiring& wiring, int rank, Arithmetic& arithmetic);

}  // namespace rehearse
