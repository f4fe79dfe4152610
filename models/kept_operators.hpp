// Which results of a transformer's layer are kept for the backward pass where operators are chosen one by
// one.
#pragma once

#include "models/transformer_parts.hpp"

namespace rehearse {

// Fills in `recompute` and `saved_bytes` of all segments of the layer that `to` has written, for
// Recompute::operators.
void keep_operators(TransformerWriter& to);

// Whether nothing but the layer's last segment reads what this segment gives (or it is that one): no gradient
// needs it.
bool read_by_last_alone(const Layer& layer, const Segment& segment);

}  // namespace rehearse
