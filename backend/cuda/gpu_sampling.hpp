// Samples the clocks, power and temperature of a rank's GPU in a separate thread during the run.
#pragma once

#include <vector>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/nvml.hpp"
#include "backend/runs/real_run.hpp"

namespace rehearse {

// Summarizes samples, which are sorted by time, by step. Step i is between bounds i and i + 1. Returns
// nothing if there are no samples.
std::vector<GpuStep> sampled_steps(const std::vector<GpuSample>& samples,
                                   const std::vector<double>& step_bounds_s);

// Sets the energy of these steps: the increase of the energy counter over each step, interpolated linearly
// between samples. Without a counter, the energy is the step's mean power times its duration.
EnergyBasis add_energy(std::vector<GpuStep>& steps, const std::vector<GpuSample>& samples,
                       const std::vector<double>& step_bounds_s);

// Bytes in use on the device, by all processes.
struct UsedMemory {
  double before_communicators = 0, after_communicators = 0;
};
// Samples the GPU of `arithmetic`, which must outlive the sampling, every 20 ms until the returned function
// is called or destroyed. If NVML is missing, the record states why nothing was sampled. Throws RunError if
// CUDA fails.
EndSampling sample_gpu(const CudaArithmetic& arithmetic, const UsedMemory& used);

}  // namespace rehearse
