// Sums up costs of a layer's kernels for tests.
#pragma once

#include <vector>

#include "models/model.hpp"

namespace rehearse::test {

inline double flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.flops();
  return sum;
}

// Returns the bytes moved by kernels that are bound by memory.
inline double memory_bytes(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == Kernel::Kind::memory) sum += kernel.bytes * kernel.count;
  }
  return sum;
}

}  // namespace rehearse::test
