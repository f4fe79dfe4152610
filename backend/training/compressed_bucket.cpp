#include "backend/training/compressed_bucket.hpp"

#include <utility>

namespace rehearse {
namespace {

float* floats(const Payload& payload) {
  return reinterpret_cast<float*>(payload.data);
}

}  // namespace

// Buffers are copied as they are, four bytes at a time, whatever numbers they hold.
CompressedBucket::CompressedBucket(Arithmetic& arithmetic, bool in_memory,
                                   std::unique_ptr<GradientCompressor> compressor,
                                   const std::vector<bool>& is_collective)
    : arithmetic_(arithmetic),
      in_memory_(in_memory),
      compressor_(std::move(compressor)),
      is_collective_(is_collective),
      buffers_(is_collective.size()) {
  for (std::size_t part = 0; part < is_collective_.size() && !in_memory_; ++part)
    if (is_collective_[part])
      buffers_[part] =
          OwnedArray(arithmetic_, compressor_->collective(static_cast<int>(part)).bytes / sizeof(float),
                     Precision::fp32);
}

void CompressedBucket::compute(int stream, int part, const Array& gradients) {
  if (in_memory_)
    return compressor_->compute(part, {reinterpret_cast<float*>(gradients.data), gradients.elements});
  const auto number = static_cast<std::size_t>(part);
  gradients_.resize(gradients.elements);
  if (part == 0) arithmetic_.copy_to_host(stream, gradients, gradients_.data());
  if (part > 0 && is_collective_[number - 1])
    arithmetic_.copy_to_host(stream, buffers_[number - 1], floats(compressor_->collective(part - 1)));
  compressor_->compute(part, gradients_);
  if (number + 1 == is_collective_.size())
    arithmetic_.copy_to_device(stream, gradients_.data(), gradients);
  else if (is_collective_[number + 1])
    arithmetic_.copy_to_device(stream, floats(compressor_->collective(part + 1)), buffers_[number + 1]);
}

Payload CompressedBucket::collective(int part) const {
  const Payload own = compressor_->collective(part);
  if (in_memory_) return own;
  return {buffers_[static_cast<std::size_t>(part)]->data, own.bytes, own.type};
}

}  // namespace rehearse
