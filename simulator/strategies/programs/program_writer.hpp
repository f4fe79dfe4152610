// Writes the passes of a pipeline stage's micro-batches, and its exchanges with its neighbours.
#pragma once

#include "simulator/strategies/programs/stage_hooks.hpp"

namespace rehearse {

// Writes the passes of all micro-batches of an optimizer step and their transfers to the stage's program.
void write_passes(StageHooks& hooks);

}  // namespace rehearse
