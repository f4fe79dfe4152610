// How a kernel of which only shapes are known is carried out: which products, or how many bytes. Forms of
// kernels that are bound by memory are GPUs' business (cuda/memory_replay.hpp).
#pragma once

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// `launches` times: `batch` products of `shape`, or, where the shape is empty, `elements` numbers of 4 bytes
// read and as many written.
struct ReplayPart {
  long launches = 0;
  MatrixShape shape;
  long batch = 0;
  std::size_t elements = 0;

  bool is_product() const { return batch > 0; }
  Replayed work(double element_bytes) const;  // of all launches
  // Numbers that a launch takes as its operands and result.
  std::size_t scratch_elements() const;
};

// A kernel in at most two parts, of which the second takes what is left over. A launch uses no more than
// `scratch_elements`, but for a product that is larger by itself. RunError for measured kernels.
struct ReplayPlan {
  ReplayPart main, rest;
};
ReplayPlan plan_replay(const Kernel& kernel, std::size_t scratch_elements);

}  // namespace rehearse
