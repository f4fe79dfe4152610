// Summarizes what a run's GPUs did, in one line of text each.
#pragma once

#include <string>

#include "simulator/trace/measurement.hpp"

namespace rehearse {

// "GPU clocks: 1,980 MHz (SM) in all steps; 412 W, 54 C in the mean; not throttled." Covers the steps after
// the warm-up and all ranks; empty if nothing was sampled.
std::string gpu_clocks_sentence(const Measurement& measurement);

// "GPU energy: 85.3 J a step, of 2 GPUs, by the GPUs' counters." The mean over the steps after the warm-up;
// empty if the energy of any GPU is unknown.
std::string gpu_energy_sentence(const Measurement& measurement);

// "GPU memory: 1.23 GiB allocated at most, 1.20 GiB predicted (error -2.4 %)."
std::string gpu_memory_sentence(double allocated_bytes, double predicted_bytes);

}  // namespace rehearse
