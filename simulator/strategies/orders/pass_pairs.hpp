// Which passes of a pipeline's stages can take turns with the pass behind them.
#pragma once

#include <vector>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

// By stage and item of its order: whether it is a forward pass that can take turns with the backward pass
// behind it. Both then begin when both have what they need, so that two passes of which one needs the other,
// however far around, cannot: neither would ever begin.
std::vector<std::vector<bool>> pass_pairs(PipelineSchedule schedule, int stages, int microbatches,
                                          int chunks);

}  // namespace rehearse
