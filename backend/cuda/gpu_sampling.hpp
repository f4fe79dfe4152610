// Clocks, power and temperature of a rank's GPU, sampled beside the run by a thread of its own.
#pragma once

#include <vector>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/nvml.hpp"
#include "backend/runs/real_run.hpp"

namespace rehearse {

// Step i lies between bounds i and i + 1; samples are in the order of their times. Nothing without samples.
std::vector<GpuStep> sampled_steps(const std::vector<GpuSample>& samples,
                                   const std::vector<double>& step_bounds_s);

// Sets the energy of these steps: the increase of the energy counter over each step, interpolated linearly
// between samples. Without a counter, the energy is the step's mean power times its duration.
EnergyBasis add_energy(std::vector<GpuStep>& steps, const std::vector<GpuSample>& samples,
                       const std::vector<double>& step_bounds_s);

// By all processes on the device, in bytes.
struct UsedMemory {
  double before_communicators = 0, after_communicators = 0;
};
// Samples the GPU of `arithmetic`, which must outlive the sampling, every 20 ms until its end is called or
// destroyed. Where NVML is not there, the record says why nothing was sampled. RunError if CUDA fails.
EndSampling sample_gpu(const CudaArithmetic& arithmetic, const UsedMemory& used);

}  // namespace rehearse
