// Provides the executor that runs a schedule on GPUs, one rank on each.
#pragma once

#include "backend/gpu/gpu_module.hpp"

namespace rehearse {

// Returns the executor. All ranks must call it; the constraints of take_gpu(), which assigns the GPUs, apply.
CudaChoice cuda_executor(const CudaOptions& options, Transport& transport);

}  // namespace rehearse
