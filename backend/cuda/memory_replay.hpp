// Replays memory-bound kernels of models for which only shapes are known. Each runs in the form that the
// model states, on arbitrary numbers.
#pragma once

#include <functional>

#include "backend/cuda/training_kernels.hpp"

namespace rehearse {

// Returns at least `bytes` of memory, filled with numbers of the given precision.
using GiveMemory = std::function<std::byte*(std::size_t bytes, Precision precision)>;

// Runs `kernel` on numbers of `precision`, or of fp32 if its elements have 4 bytes; kernels without rows run
// in precision `any`. A launch uses at most `most_bytes`, unless a single row or sample needs more. Results
// are written to memory after the operands and do not overwrite them.
Replayed replay_memory(kernels::Stream stream, const Kernel& kernel, Precision precision, Precision any,
                       std::size_t most_bytes, const GiveMemory& memory);

}  // namespace rehearse
