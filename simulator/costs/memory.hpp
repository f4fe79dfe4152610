// What training keeps for each parameter, and what an optimizer's update moves of it.
#pragma once

#include "models/precision.hpp"
#include "simulator/costs/optimizer.hpp"

namespace rehearse {

// Bytes per parameter.
struct StateBytes {
  double weight = 0;
  double gradient = 0;
  double optimizer = 0;  // moments, and in mixed precision the fp32 master weights
  double total() const { return weight + gradient + optimizer; }
};

// `gradient` is the precision in which gradients are accumulated and sent; they are never kept in fewer bytes
// than the weights have.
StateBytes state_bytes(Optimizer optimizer, Precision precision, Precision gradient);

// Bytes per parameter that one update reads and writes.
double update_bytes(Optimizer optimizer, Precision precision, Precision gradient);

}  // namespace rehearse
