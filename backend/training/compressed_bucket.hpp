// A bucket whose gradients are compressed: by processors where arrays lie in their memory, else by the
// device.
#pragma once

#include <memory>

#include "backend/training/device_compressor.hpp"

namespace rehearse {

class CompressedBucket {
public:
  // `in_memory`: arrays lie in the process's memory. RunError if the device has no kernels for it.
  CompressedBucket(Arithmetic& arithmetic, bool in_memory, const CompressionTask& task);
  // Part `part`, a computation on the bucket's gradients (fp32).
  void compute(int stream, int part, const Array& gradients);
  // The buffer of part `part`, a collective, where arrays lie.
  Payload collective(int part) const;

private:
  std::unique_ptr<GradientCompressor> by_processors_;  // one of the two
  std::unique_ptr<DeviceCompressor> by_device_;
};

}  // namespace rehearse
