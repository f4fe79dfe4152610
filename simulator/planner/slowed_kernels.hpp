// By how much collectives that run beside computing prolong it, at least.
#pragma once

#include <vector>

#include "simulator/costs/interference.hpp"
#include "simulator/planner/layer_times.hpp"

namespace rehearse {

// Kernels by how much they are slowed down, the least first.
struct SlowedKernels {
  struct Share {
    double slower = 1;   // time beside the load over time alone
    double seconds = 0;  // alone, of all layers for one micro-batch
  };
  std::vector<Share> shares;
  double seconds = 0;  // of all

  // Seconds by which kernels that take `own_s` alone take longer, if collectives run for `beside_s` in all:
  // beside the kernels that they slow down least. Kernels are mixed as in the whole model.
  double more_s(double own_s, double beside_s) const;
};

SlowedKernels slowed_kernels(const ModelTimes& model, const Device& device, Precision precision,
                             const DeviceLoad& load);

}  // namespace rehearse
