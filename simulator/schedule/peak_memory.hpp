// Estimates the most memory that a rank of a schedule needs, only from the order of its program.
#pragma once

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Returns the bytes of the worker that needs most. Assumes that ops run one after the other, as their program
// lists them. Concurrency of streams is ignored, so a simulation can find the buffers of a few additional
// transfers.
double peak_worker_bytes(const Schedule& schedule);

// Returns the bytes of all tensors of a rank together, whenever they are live.
double tensor_bytes(const Program& program, const Role& role, int rank);

}  // namespace rehearse
