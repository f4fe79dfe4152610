// Launching kernels: how many blocks, pointers to their operands, and the check behind a launch.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "backend/cuda/check.hpp"
#include "backend/cuda/kernel_code.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse::kernels {

constexpr std::size_t kMostBlocks = 8192;  // with more elements, each thread takes several

// Blocks of device::kThreads threads for so many threads, at most `most`.
inline unsigned blocks_for(std::size_t threads, std::size_t most = kMostBlocks) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>((threads + device::kThreads - 1) / device::kThreads, 1, most));
}

// The elements of an array from the 4-byte word number `first_word` on.
template <class T = float>
T* elements(const Array& array, std::size_t first_word = 0) {
  return reinterpret_cast<T*>(array.data + first_word * sizeof(float));
}

// RunError if the launch before it failed.
inline void check_launch(std::string_view kernel) {
  check_status(cudaGetLastError(), std::string("launch of ") + std::string(kernel));
}

}  // namespace rehearse::kernels
