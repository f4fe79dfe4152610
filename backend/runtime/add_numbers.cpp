#include "backend/runtime/add_numbers.hpp"

#include "backend/runtime/half_bits.hpp"

namespace rehearse {

std::uint16_t half_from_float(float x) {
  return half_bits(x);
}

float float_from_half(std::uint16_t bits) {
  return float_of_half(bits);
}

void add_numbers(Precision type, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (type == Precision::fp16) {
    auto* sums = reinterpret_cast<std::uint16_t*>(to);
    const auto* came = reinterpret_cast<const std::uint16_t*>(from);
    for (std::size_t i = 0; i < bytes / 2; ++i)
      sums[i] = half_from_float(float_from_half(sums[i]) + float_from_half(came[i]));
    return;
  }
  auto* sums = reinterpret_cast<float*>(to);
  const auto* came = reinterpret_cast<const float*>(from);
  for (std::size_t i = 0; i < bytes / 4; ++i) sums[i] += came[i];
}

}  // namespace rehearse
