// Defines the device code of the kernel that runs all transformer operations, for nvcc and for anything else
// that runs it.
#pragma once

#include "backend/cuda/kernel_code.hpp"
#include "backend/training/transformer_elements.hpp"

namespace rehearse::kernels::device {

template <class Piece>
__global__ void each(long count, Piece piece) {
  for (auto i = static_cast<long>(first_element()); i < count; i += static_cast<long>(stride())) piece(i);
}

}  // namespace rehearse::kernels::device
