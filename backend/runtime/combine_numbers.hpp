// Combines received numbers with those in a buffer, in fp32, or in fp16 with each result rounded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/precision.hpp"
#include "simulator/schedule/collective.hpp"

namespace rehearse {

// Converts to IEEE 754 binary16: rounds to nearest, ties to even; overflow becomes infinity.
std::uint16_t half_from_float(float x);
float float_from_half(std::uint16_t bits);

// Computes to[i] = to[i] + from[i], or the larger of the two, over `bytes`, which is a multiple of 4. `type`
// is fp32 or fp16. Both buffers are aligned to 4 bytes. For a mean, the numbers were divided beforehand.
void combine_numbers(Precision type, Collective::Reduction reduction, std::byte* to, const std::byte* from,
                     std::size_t bytes);

}  // namespace rehearse
