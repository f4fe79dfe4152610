// Compresses the gradients of a bucket: on processors if arrays are in their memory, else on the device.
#pragma once

#include <memory>

#include "backend/training/device_compressor.hpp"

namespace rehearse {

class CompressedBucket {
public:
  // `in_memory`: arrays are in the process's memory. Throws RunError if the device has no kernels for the
  // task.
  CompressedBucket(Arithmetic& arithmetic, bool in_memory, const CompressionTask& task);
  // Runs step `part` of the compression, a computation on the bucket's gradients (fp32).
  void compute(int stream, int part, const Array& gradients);
  // Returns the buffer of step `part`, a collective, in the memory that has the arrays.
  Payload collective(int part) const;

private:
  std::unique_ptr<GradientCompressor> by_processors_;  // one of the two is null
  std::unique_ptr<DeviceCompressor> by_device_;
};

}  // namespace rehearse
