#include "backend/training/compressed_bucket.hpp"

#include "models/text/error.hpp"

namespace rehearse {

CompressedBucket::CompressedBucket(Arithmetic& arithmetic, bool in_memory, const CompressionTask& task) {
  if (in_memory)
    by_processors_ =
        gradient_compressor(task.choice, task.layers, task.rank, task.ranks, task.seed, task.bucket);
  else
    by_device_ = arithmetic.compressor(task);
  if (!by_processors_ && !by_device_)
    throw RunError(arithmetic.device_name() + " has no kernels that compress gradients");
}

void CompressedBucket::compute(int stream, int part, const Array& gradients) {
  if (by_device_) return by_device_->compute(stream, part, gradients);
  by_processors_->compute(part, {reinterpret_cast<float*>(gradients.data), gradients.elements});
}

Payload CompressedBucket::collective(int part) const {
  return by_device_ ? by_device_->collective(part) : by_processors_->collective(part);
}

}  // namespace rehearse
