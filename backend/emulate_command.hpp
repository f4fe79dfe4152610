// `rehearse-run emulate`: the scenario's cluster out of network namespaces on this machine, and its schedule
// for real across it.
#pragma once

#include <iosfwd>

#include "backend/calibrate/host_calibrate.hpp"
#include "backend/run_result.hpp"

namespace rehearse {

// RunError in one line if this machine cannot (no root, no iproute2). Whatever ends the process takes the
// network down.
void run_emulate(const ScenarioArguments& arguments, std::istream& in, std::ostream& out);

// The links between the ranks of a scenario in its emulated cluster, to be calibrated; nodes are the
// scenario's. Errors as above.
LinkGround emulated_links(const ScenarioArguments& arguments, std::istream& in);

}  // namespace rehearse
