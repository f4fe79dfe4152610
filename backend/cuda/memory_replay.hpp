// Kernels that are bound by memory, of models of which only shapes are known: as the form that the model
// states, on memory whose numbers mean nothing.
#pragma once

#include <functional>

#include "backend/cuda/training_kernels.hpp"

namespace rehearse {

// Memory of this many bytes at least, filled with numbers of a precision.
using GiveMemory = std::function<std::byte*(std::size_t bytes, Precision precision)>;

// All of `kernel`, whose numbers are of `precision`, or of fp32 where they have 4 bytes. What has no rows is
// computed in `any`. A launch uses no more than `most_bytes`, but for a row or a sample that is larger by
// itself. Results lie behind operands, so that operands stay what they are.
Replayed replay_memory(kernels::Stream stream, const Kernel& kernel, Precision precision, Precision any,
                       std::size_t most_bytes, const GiveMemory& memory);

}  // namespace rehearse
