// Declares compression of gradients on the device that holds them.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"
#include "backend/training/gradient_compression.hpp"

namespace rehearse {

// The arguments of gradient_compressor().
struct CompressionTask {
  CompressionChoice choice;
  std::vector<DenseLayer> layers;
  int rank = 0, ranks = 1;
  std::uint64_t seed = 0;
  int bucket = 0;
};

// Like GradientCompressor, but issues its work to a stream. Buffers are on the device.
class DeviceCompressor {
public:
  virtual ~DeviceCompressor() = default;
  virtual void compute(int stream, int part, const Array& gradients) = 0;
  virtual Payload collective(int part) const = 0;
};

}  // namespace rehearse
