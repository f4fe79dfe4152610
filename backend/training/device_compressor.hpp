// Gradients compressed where they lie, on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/runtime/workload.hpp"
#include "backend/training/arithmetic.hpp"
#include "backend/training/gradient_compression.hpp"

namespace rehearse {

// As gradient_compressor() takes it.
struct CompressionTask {
  CompressionChoice choice;
  std::vector<DenseLayer> layers;
  int rank = 0, ranks = 1;
  std::uint64_t seed = 0;
  int bucket = 0;
};

// As GradientCompressor, issued to a stream. Buffers lie on the device.
class DeviceCompressor {
public:
  virtual ~DeviceCompressor() = default;
  virtual void compute(int stream, int part, const Array& gradients) = 0;
  virtual Payload collective(int part) const = 0;
};

}  // namespace rehearse
