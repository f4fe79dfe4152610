// Parses sizes of messages as people write them: "8", "64K", "1M..8G*2".
#pragma once

#include <string_view>
#include <vector>

namespace rehearse {

inline constexpr std::size_t kMostCollectiveSizes = 10'000;

// Parses sizes that are separated by commas. Each is a whole number with an optional K, M or G (powers of
// 1024), or a range FROM..TO (each twice the previous one), FROM..TO*FACTOR or FROM..TO+STEP. Returns bytes
// in the given order. Throws InputError, which names --bytes, for anything else and for sizes out of range
// (collective_time.hpp).
std::vector<double> parse_collective_sizes(std::string_view text);

}  // namespace rehearse
