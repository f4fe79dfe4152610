// The entry of the module for GPUs (rehearse-gpu.so), which rehearse-run loads when GPUs are asked for.
#include "backend/gpu/gpu_module.hpp"
#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/cuda_executor.hpp"
#include "backend/cuda/nccl_links.hpp"

extern "C" const rehearse::GpuModule* rehearse_gpu_module() {
  static const rehearse::GpuModule module = {rehearse::cuda_executor,
                                             []() -> std::unique_ptr<rehearse::Arithmetic> {
                                               return std::make_unique<rehearse::CudaArithmetic>(0, 1);
                                             },
                                             rehearse::nccl_links};
  return &module;
}
