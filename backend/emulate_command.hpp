// `rehearse-run emulate`: the scenario's cluster out of network namespaces on this machine, and its schedule
// for real across it.
#pragma once

#include <iosfwd>

#include "backend/run_result.hpp"

namespace rehearse {

// RunError in one line if this machine cannot (no root, no iproute2). Whatever ends the process takes the
// network down.
void run_emulate(const ScenarioArguments& arguments, std::istream& in, std::ostream& out);

}  // namespace rehearse
