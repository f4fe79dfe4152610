#include "backend/runtime/combine_numbers.hpp"

#include <algorithm>

#include "backend/runtime/half_bits.hpp"

namespace rehearse {
namespace {

void combine(Precision type, std::byte* to, const std::byte* from, std::size_t bytes, const auto& operation) {
  if (type == Precision::fp16) {
    auto* results = reinterpret_cast<std::uint16_t*>(to);
    const auto* came = reinterpret_cast<const std::uint16_t*>(from);
    for (std::size_t i = 0; i < bytes / 2; ++i)
      results[i] = half_from_float(operation(float_from_half(results[i]), float_from_half(came[i])));
    return;
  }
  auto* results = reinterpret_cast<float*>(to);
  const auto* came = reinterpret_cast<const float*>(from);
  for (std::size_t i = 0; i < bytes / 4; ++i) results[i] = operation(results[i], came[i]);
}

}  // namespace

std::uint16_t half_from_float(float x) {
  return half_bits(x);
}

float float_from_half(std::uint16_t bits) {
  return float_of_half(bits);
}

void combine_numbers(Precision type, Collective::Reduction reduction, std::byte* to, const std::byte* from,
                     std::size_t bytes) {
  if (reduction == Collective::Reduction::maximum)
    combine(type, to, from, bytes, [](float a, float b) { return std::max(a, b); });
  else
    combine(type, to, from, bytes, [](float a, float b) { return a + b; });
}

}  // namespace rehearse
