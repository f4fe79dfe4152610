// Bounds the time and the memory of a scenario's passes without simulating it.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct PassesBound {
  // Time of a step's forward and backward passes, including the communication that they wait for, without the
  // gradients' all-reduce and the optimizer. Infinity if the model cannot be divided like this.
  double seconds = 0;
  // Memory of the fullest device, including the reserve. 0 if state is offloaded to hosts.
  double bytes = 0;
};

// Returns lower bounds for a scenario; takes a few milliseconds. Those of two scenarios show which of them
// computes faster. `reserves`: whether the memory that CUDA, NCCL and cuBLAS are estimated to use is counted.
PassesBound passes_bound(const Scenario& scenario, bool reserves);

}  // namespace rehearse
