// Declares sharded data parallelism: each of the ranks that share a batch holds a part of the optimizer
// state, the gradients and the weights (ZeRO, FSDP).
#pragma once

#include <memory>

#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

// Parses zero_stage, fsdp and the keys that go with them, including offload; returns null if they ask for no
// shards.
std::shared_ptr<const GradientStrategy> read_shards(Section& strategy, StrategyChoice& choice);

// Returns the strategy that zero_stage = `stage` (1 to 3) alone selects.
std::shared_ptr<const GradientStrategy> zero_stage(int stage);

}  // namespace rehearse
