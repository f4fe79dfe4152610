// A rank that really trains: a worker computes its layers of a multi-layer perceptron, a server updates its
// share of the weights; messages and collectives carry their numbers.
#pragma once

#include <memory>
#include <string>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"
#include "backend/training/workload_parts.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Why a scenario's schedule cannot really train (another model than a perceptron, a precision that there is
// no arithmetic for, ...) on processors or on GPUs; empty if it can.
std::string why_not_trained(const Scenario& scenario, const Schedule& schedule, bool on_processors);

std::unique_ptr<Workload> training_workload(const Scenario& scenario, const Schedule& schedule,
                                            const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                            const TrainingOptions& options);

}  // namespace rehearse
