// Trains on a rank: a worker computes its layers of a model, a server updates its share of the weights, and
// messages and collectives carry their real numbers.
#pragma once

#include <memory>
#include <string>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"
#include "backend/training/workload_parts.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns the reason why a scenario's schedule cannot be trained on processors or on GPUs (the model or a
// precision is not supported, ...); empty if it can.
std::string why_not_trained(const Scenario& scenario, const Schedule& schedule, bool on_processors);

std::unique_ptr<Workload> training_workload(const Scenario& scenario, const Schedule& schedule,
                                            const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                            const TrainingOptions& options);

}  // namespace rehearse
