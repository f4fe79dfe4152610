#include "backend/runtime/add_numbers.hpp"

#include <bit>

namespace rehearse {

std::uint16_t half_from_float(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000u, kLargest = 0x477fefffu;  // below 65520
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  if (magnitude > kInfinity) return sign | 0x7e00u;
  if (magnitude > kLargest) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    // Below 2^-14 halves lie 2^-24 apart, as floats at 1/2 do: adding that rounds.
    const float moved = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(moved) - 0x3f000000u));
  }
  const std::uint32_t even = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + even) >> 13));
}

float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
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
