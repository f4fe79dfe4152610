// Gradient compression by a GPU, as processors do it (training/gradient_compression.hpp).
#pragma once

#include <memory>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/training/device_compressor.hpp"

namespace rehearse {

// Null if nothing is compressed. `arithmetic` must outlive it.
std::unique_ptr<DeviceCompressor> cuda_compressor(CudaArithmetic& arithmetic, const CompressionTask& task);

}  // namespace rehearse
