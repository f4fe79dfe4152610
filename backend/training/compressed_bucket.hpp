// A bucket whose gradients are compressed by processors, wherever they and the messages' buffers lie.
#pragma once

#include <memory>
#include <vector>

#include "backend/training/arithmetic.hpp"
#include "backend/training/gradient_compression.hpp"

namespace rehearse {

// Where arrays do not lie in the process's memory, gradients and buffers are copied there before each
// computation and back behind it, which waits for the stream.
class CompressedBucket {
public:
  // `is_collective`: of each part of the bucket's sync.
  CompressedBucket(Arithmetic& arithmetic, bool in_memory, std::unique_ptr<GradientCompressor> compressor,
                   const std::vector<bool>& is_collective);
  // Part `part`, a computation on the bucket's gradients (fp32).
  void compute(int stream, int part, const Array& gradients);
  bool on_host() const { return !in_memory_; }  // compute() waits for the stream
  // The buffer of part `part`, a collective, on the device.
  Payload collective(int part) const;

private:
  Arithmetic& arithmetic_;
  const bool in_memory_;
  const std::unique_ptr<GradientCompressor> compressor_;
  const std::vector<bool> is_collective_;
  std::vector<float> gradients_;     // as processors see them
  std::vector<OwnedArray> buffers_;  // by part; empty for those that compute
};

}  // namespace rehearse
