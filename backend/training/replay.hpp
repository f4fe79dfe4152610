// Decides how to replay a kernel for which only shapes are known: with which products, or with how many
// bytes. Only GPUs replay the forms of memory-bound kernels (cuda/memory_replay.hpp).
#pragma once

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// Work that is launched `launches` times: `batch` products of `shape` or, if `batch` is 0, a copy of
// `elements` numbers of 4 bytes.
struct ReplayPart {
  long launches = 0;
  MatrixShape shape;
  long batch = 0;
  std::size_t elements = 0;

  bool is_product() const { return batch > 0; }
  Replayed work(double element_bytes) const;  // of all launches
  // Returns how many numbers the operands and results of a launch take.
  std::size_t scratch_elements() const;
};

// A kernel in at most two parts, of which the second is the remainder. A launch uses at most
// `scratch_elements`, unless a single product is larger. plan_replay() throws RunError for measured kernels.
struct ReplayPlan {
  ReplayPart main, rest;
};
ReplayPlan plan_replay(const Kernel& kernel, std::size_t scratch_elements);

}  // namespace rehearse
