// Determines which results of a transformer layer are saved for the backward pass if recomputation is chosen
// per operator.
#pragma once

#include "models/transformer_parts.hpp"

namespace rehearse {

// Fills in `recompute` and `saved_bytes` of all segments of the layer that `to` has written, for
// Recompute::operators.
void keep_operators(TransformerWriter& to);

// Whether only the layer's last segment reads the results of this segment (or it is the last one), so that no
// gradient needs them.
bool read_by_last_alone(const Layer& layer, const Segment& segment);

}  // namespace rehearse
