// Provides helpers for launching kernels: the number of blocks, pointers to operands, and the check after a
// launch.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "backend/cuda/check.hpp"
#include "backend/cuda/kernel_code.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse::kernels {

constexpr std::size_t kMostBlocks = 8192;  // with more elements, each thread takes several

// Returns the blocks of device::kThreads threads that provide `threads` threads, at most `most`.
inline unsigned blocks_for(std::size_t threads, std::size_t most = kMostBlocks) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>((threads + device::kThreads - 1) / device::kThreads, 1, most));
}

// Returns a pointer to the elements of an array from 4-byte word number `first_word` on.
template <class T = float>
T* elements(const Array& array, std::size_t first_word = 0) {
  return reinterpret_cast<T*>(array.data + first_word * sizeof(float));
}

// Throws RunError if the preceding launch failed.
inline void check_launch(std::string_view kernel) {
  check_status(cudaGetLastError(), std::string("launch of ") + std::string(kernel));
}

}  // namespace rehearse::kernels
