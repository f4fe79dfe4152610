// Computes a lower bound of the time by which collectives that run beside computation prolong it.
#pragma once

#include <vector>

#include "simulator/costs/interference.hpp"
#include "simulator/planner/layer_times.hpp"

namespace rehearse {

// The kernels of a model, sorted by how much they are slowed down, the least first.
struct SlowedKernels {
  struct Share {
    double slower = 1;   // time beside the load divided by time alone
    double seconds = 0;  // alone, for all layers and one micro-batch
  };
  std::vector<Share> shares;
  double seconds = 0;  // of all shares

  // Returns the seconds by which kernels that take `own_s` alone take longer if collectives run for
  // `beside_s` in total, assuming that they run beside the kernels that they slow down least. Kernels are
  // mixed as in the entire model.
  double more_s(double own_s, double beside_s) const;
};

SlowedKernels slowed_kernels(const ModelTimes& model, const Device& device, Precision precision,
                             const DeviceLoad& load);

}  // namespace rehearse
