// Work of which only the shapes count: kernels of a model's real sizes on numbers without meaning, or sleep
// for as long as a device's profile says; and messages of the real sizes.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse {

// `timed_s`: by work of the schedule, how long it takes on this rank's device; empty: it is really computed.
std::unique_ptr<Workload> bare_workload(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Arithmetic& arithmetic, std::vector<double> timed_s);

}  // namespace rehearse
