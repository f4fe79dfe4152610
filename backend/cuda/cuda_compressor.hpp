// Compresses gradients on a GPU in the same way as on processors (training/gradient_compression.hpp).
#pragma once

#include <memory>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/training/device_compressor.hpp"

namespace rehearse {

// Returns null if the task does not compress. `arithmetic` must outlive the compressor.
std::unique_ptr<DeviceCompressor> cuda_compressor(CudaArithmetic& arithmetic, const CompressionTask& task);

}  // namespace rehearse
