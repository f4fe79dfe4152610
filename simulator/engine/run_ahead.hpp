// Tells which ops of a run may begin and end ahead of SimGrid's clock: those whose times follow from the
// times of the ops before them, in whatever order these are simulated.
#pragma once

#include <vector>

#include "simulator/costs/engine_options.hpp"
#include "simulator/engine/layout.hpp"

namespace rehearse {

// Returns whether streams may run ahead at all: nothing in the run depends on what else happens at a time,
// except flows that share links, and computation beside collectives.
bool may_run_ahead(const Run& run, const EngineOptions& options);

// Returns by transfer class whether its calls must come in the order of simulated time: several streams of a
// rank call it, or it slows computation down.
std::vector<bool> called_in_time(const Run& run, const Layout& layout);

}  // namespace rehearse
