// PyTorch's DataParallel, really trained: the first device makes the inputs of all, takes their loss and
// updates; the others compute with the weights that it gives them.
#pragma once

#include <memory>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"
#include "backend/training/workload_parts.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Of the schedule that simulator/strategies/gradients/first_device.cpp writes, in fp32. No two devices have
// the same gradients: what is hashed in place of them is the weights that each step is computed with.
std::unique_ptr<Workload> first_device_workload(const Scenario& scenario, const Schedule& schedule,
                                                const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                                const TrainingOptions& options);

}  // namespace rehearse
