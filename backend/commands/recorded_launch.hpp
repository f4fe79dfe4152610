// Starts ranks on this machine and records the steps that they have finished even if the run fails.
#pragma once

#include <functional>

#include "backend/commands/run_result.hpp"
#include "backend/host/launch.hpp"

namespace rehearse {

// Like launch(), but its RunError also states what became of the finished steps: if a record is wanted, it
// contains them, with `measurement`. `body` gets the journal for run_rank(), or null if no record is wanted.
void launch_recorded(const LaunchOptions& options, const RunOutput& output, const Scenario& scenario,
                     const Plan& plan, const Measurement& measurement,
                     const std::function<void(Transport&, Journal*)>& body);

}  // namespace rehearse
