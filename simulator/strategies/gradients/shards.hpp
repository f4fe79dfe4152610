// Sharded data parallelism: ranks that share a batch each hold a part of the optimizer state, the gradients
// and the weights (ZeRO, FSDP).
#pragma once

#include <memory>

#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

// Parses zero_stage, fsdp and the keys that go with them; null if they ask for no shards.
std::shared_ptr<const GradientStrategy> read_shards(Section& strategy, const StrategyChoice& choice);

// The least that must be shared out besides what stage `stage` of ZeRO shares out already, to hold
// `over_bytes` less on a device; empty if nothing is enough.
Advice more_shards(const Scenario& scenario, int stage, const GradientStrategy::HeldBytes& held,
                   double over_bytes);

}  // namespace rehearse
