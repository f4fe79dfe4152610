// Combines numbers that arrive with those that are there: in fp32, or with each result rounded to fp16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/precision.hpp"
#include "simulator/schedule/collective.hpp"

namespace rehearse {

// IEEE 754 binary16, to nearest, ties to even; what is too large becomes infinite.
std::uint16_t half_from_float(float x);
float float_from_half(std::uint16_t bits);

// to[i] = to[i] + from[i], or the larger of the two, over `bytes`, a multiple of 4; `type` is fp32 or fp16.
// Both are aligned to 4 bytes. A mean is a sum of numbers that were divided before.
void combine_numbers(Precision type, Collective::Reduction reduction, std::byte* to, const std::byte* from,
                     std::size_t bytes);

}  // namespace rehearse
