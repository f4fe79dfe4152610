// Describes what the checkpoints of a scenario cost.
#pragma once

#include <string>

#include "simulator/report/report.hpp"
#include "simulator/report/way_out.hpp"

namespace rehearse {

// Returns what a checkpoint contains, how long training stops for it, and what limits the writing; empty
// without checkpoints.
std::string checkpoint_sentence(const Result& result);

// Advises against the stalls of checkpoints.
WayOut cheaper_checkpoints(const Result& result);

}  // namespace rehearse
