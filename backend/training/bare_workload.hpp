// Provides a workload for which only shapes matter: kernels of a model's real sizes on arbitrary numbers, or
// sleeping for as long as a device's profile predicts, and messages of the real sizes.
#pragma once

#include <memory>
#include <vector>

#include "backend/loading/batch_input.hpp"
#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse {

// `input`: that loads its batches; null: no ops load them. `timed_s` has the time in seconds of each work of
// the schedule on this rank's device; empty: kernels are really computed.
std::unique_ptr<Workload> bare_workload(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Arithmetic& arithmetic, std::vector<double> timed_s,
                                        BatchInput* input = nullptr);

}  // namespace rehearse
