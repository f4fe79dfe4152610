// Declares what sharded data parallelism adds to the workers of a pipeline stage.
#pragma once

#include <memory>

#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

// Returns hooks that scatter the sums of gradients and gather weights, as `state` shards them; with offload,
// also those that move the shards to and from the host.
std::unique_ptr<StageHooks> shard_hooks(StepPlan& plan, int stage, const SharedState& state);

}  // namespace rehearse
