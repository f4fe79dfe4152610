// Provides transformer operations on a GPU.
#pragma once

#include <functional>
#include <memory>

#include "backend/cuda/training_kernels.hpp"
#include "backend/training/transformer_arithmetic.hpp"

namespace rehearse::kernels {

// `stream_of` returns the stream with a given number; what it refers to must outlive the result.
std::unique_ptr<TransformerArithmetic> transformer(std::function<Stream(int)> stream_of);

}  // namespace rehearse::kernels
