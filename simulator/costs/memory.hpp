// Computes the bytes that training stores for each parameter, and those that an optimizer's update moves.
#pragma once

#include "models/precision.hpp"
#include "simulator/costs/optimizer.hpp"

namespace rehearse {

// Bytes stored per parameter.
struct StateBytes {
  double weight = 0;
  double gradient = 0;
  double optimizer = 0;  // moments, and in mixed precision the fp32 master weights
  double total() const { return weight + gradient + optimizer; }
};

// Returns the bytes per parameter. `gradient` is the precision in which gradients are accumulated and sent;
// they never take fewer bytes than the weights.
StateBytes state_bytes(Optimizer optimizer, Precision precision, Precision gradient);

// Returns the bytes per parameter that one update reads and writes.
double update_bytes(Optimizer optimizer, Precision precision, Precision gradient);

}  // namespace rehearse
