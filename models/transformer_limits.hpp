// The largest dimensions of a transformer that are read from a file.
#pragma once

#include <cstdint>

namespace rehearse {

inline constexpr std::int64_t kMaxLayers = 10'000, kMaxWidth = 1'000'000, kMaxHeads = 100'000,
                              kMaxInner = 10'000'000, kMaxTokens = 100'000'000, kMaxExperts = 10'000,
                              kMaxImage = 100'000;

}  // namespace rehearse
