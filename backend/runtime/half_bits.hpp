// Converts halves (IEEE 754 binary16) to and from bits, with the same code on processors and GPUs.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define REHEARSE_HALF __host__ __device__ inline
#else
#define REHEARSE_HALF inline
#endif

namespace rehearse {

REHEARSE_HALF std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
REHEARSE_HALF float float_of(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// Rounds to nearest, ties to even; overflow becomes infinity.
REHEARSE_HALF std::uint16_t half_bits(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000u, kLargest = 0x477fefffu;  // 65520 overflows
  const std::uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude > kLargest) return static_cast<std::uint16_t>(sign | 0x7c00u);
  // Below 2^-14, halves are 2^-24 apart, as floats at 1/2 are, so adding 1/2 rounds.
  if (magnitude < 0x38800000u)
    return static_cast<std::uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u));
  const std::uint32_t even = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + even) >> 13));
}

REHEARSE_HALF float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x400u) return float_of(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

}  // namespace rehearse
