// Determines which passes of a pipeline's stages can take turns with the pass after them.
#pragma once

#include <vector>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

// Returns, by stage and item of its order, whether the item is a forward pass that can take turns with the
// backward pass after it. Both then begin when the inputs of both are available. Two passes of which one
// depends on the other, directly or through other stages, therefore cannot take turns: neither would ever
// begin. `place` is that of any stage.
std::vector<std::vector<bool>> pass_pairs(PipelineSchedule schedule, const StagePlace& place);

}  // namespace rehearse
