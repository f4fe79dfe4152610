#include "simulator/report/address_space.hpp"

#include <algorithm>
#include <iterator>

namespace rehearse {

std::int64_t AddressSpace::allocate(std::int64_t bytes) {
  const std::int64_t size = (std::max<std::int64_t>(bytes, 1) + unit_ - 1) / unit_ * unit_;
  std::int64_t address = end_;
  const auto place =
      std::find_if(free_.begin(), free_.end(), [&](const auto& free) { return free.second >= size; });
  if (place == free_.end()) {
    end_ += size;
  } else {
    address = place->first;
    const std::int64_t left = place->second - size;
    free_.erase(place);
    if (left > 0) free_.emplace(address + size, left);
  }
  blocks_.emplace(address, size);
  return address;
}

void AddressSpace::free(std::int64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return;
  const auto [place, fresh] = free_.emplace(*block);
  blocks_.erase(block);
  if (const auto next = std::next(place);
      next != free_.end() && place->first + place->second == next->first) {
    place->second += next->second;
    free_.erase(next);
  }
  if (place == free_.begin()) return;
  const auto before = std::prev(place);
  if (before->first + before->second != place->first) return;
  before->second += place->second;
  free_.erase(place);
}

}  // namespace rehearse
