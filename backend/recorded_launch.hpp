// Ranks started here, of whose run something is kept even if it fails.
#pragma once

#include <functional>

#include "backend/host/launch.hpp"
#include "backend/run_result.hpp"

namespace rehearse {

// launch(), whose RunError tells what became of the steps that were finished: if a record is wanted, they are
// written as one, with `measurement`. `body` gets the journal for run_rank(); null: nobody wants a record.
void launch_recorded(const LaunchOptions& options, const RunOutput& output, const Scenario& scenario,
                     const Plan& plan, const Measurement& measurement,
                     const std::function<void(Transport&, Journal*)>& body);

}  // namespace rehearse
