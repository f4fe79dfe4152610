// Number formats: what a tensor's elements are, and which of a device's peaks a matrix product uses.
#pragma once

#include <array>
#include <string_view>

namespace rehearse {

enum class Precision { fp32, tf32, fp16, bf16, fp8 };

inline constexpr std::array<std::string_view, 5> kPrecisionNames = {"fp32", "tf32", "fp16", "bf16", "fp8"};

constexpr std::string_view name_of(Precision p) {
  return kPrecisionNames[static_cast<std::size_t>(p)];
}

// Bytes of one stored element. fp8 training keeps activations and weights in bf16 (only the operands of
// matrix products are cast), so its elements are 2 bytes wide in memory.
constexpr double element_bytes(Precision p) {
  return p == Precision::fp32 || p == Precision::tf32 ? 4.0 : 2.0;
}

}  // namespace rehearse
