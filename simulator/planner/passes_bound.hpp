// Bounds the time and the memory of a scenario's passes without simulating it.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct PassesBound {
  // Of a step's forward and backward passes with the communication that holds them up, but without combining
  // gradients and updating weights. Infinity if the model cannot be divided like this.
  double seconds = 0;
  // On the fullest device, including the reserve; 0 if parts of the state are offloaded to hosts.
  double bytes = 0;
};

// Returns lower bounds for a scenario; takes a few milliseconds. Those of two scenarios show which of them
// computes faster. `reserves`: whether the memory that CUDA, NCCL and cuBLAS are estimated to use is counted.
PassesBound passes_bound(const Scenario& scenario, bool reserves);

}  // namespace rehearse
