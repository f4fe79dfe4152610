// Numbers that arrive are added to those that are there: in fp32, or each sum rounded to fp16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/precision.hpp"

namespace rehearse {

// IEEE 754 binary16, to nearest, ties to even; what is too large becomes infinite.
std::uint16_t half_from_float(float x);
float float_from_half(std::uint16_t bits);

// to[i] += from[i] over `bytes`, a multiple of 4; `type` is fp32 or fp16. Both are aligned to 4 bytes.
void add_numbers(Precision type, std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace rehearse
