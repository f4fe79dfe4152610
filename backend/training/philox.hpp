// Implements Philox4x32-10, which computes four random words from a counter and a key (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011), with the same code on processors and GPUs.
#pragma once

#include <cstdint>

#include "backend/training/element_wise.hpp"

namespace rehearse {

struct PhiloxWords {
  std::uint32_t words[4];
};

REHEARSE_ELEMENT PhiloxWords philox_words(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  // Multipliers and key increments of Philox4x32, from table 2 of the paper and its library Random123.
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kIncrement0 = 0x9E3779B9, kIncrement1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter.words[0],
                        product1 = kMultiplier1 * counter.words[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.words[1] ^ key0,
                static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.words[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += kIncrement0;
    key1 += kIncrement1;
  }
  return counter;
}

}  // namespace rehearse
