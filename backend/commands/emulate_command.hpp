// Declares `rehearse-run emulate`, which builds the scenario's cluster from network namespaces on this
// machine and runs its schedule across it.
#pragma once

#include <iosfwd>

#include "backend/calibrate/host_calibrate.hpp"
#include "backend/commands/run_result.hpp"

namespace rehearse {

// Throws RunError with one line if this machine cannot (no root, no iproute2). The network disappears with
// the process, however the process ends.
void run_emulate(const ScenarioArguments& arguments, std::istream& in, std::ostream& out);

// Returns the links between the ranks of a scenario in its emulated cluster, for calibration; nodes are the
// scenario's. Throws the same errors.
LinkGround emulated_links(const ScenarioArguments& arguments, std::istream& in);

}  // namespace rehearse
