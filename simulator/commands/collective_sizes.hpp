// Sizes of messages as people write them: "8", "64K", "1M..8G*2".
#pragma once

#include <string_view>
#include <vector>

namespace rehearse {

inline constexpr std::size_t kMostCollectiveSizes = 10'000;

// Sizes with commas between them; each a whole number with K, M or G (powers of 1024), or a range FROM..TO
// (each twice the last), FROM..TO*FACTOR or FROM..TO+STEP. Bytes, in the order given. InputError, in the
// name of --bytes, for anything else and for sizes out of range (collective_time.hpp).
std::vector<double> parse_collective_sizes(std::string_view text);

}  // namespace rehearse
