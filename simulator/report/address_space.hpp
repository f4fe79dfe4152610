// Gives blocks of memory addresses: the first free place that is large enough.
#pragma once

#include <cstdint>
#include <map>

namespace rehearse {

class AddressSpace {
public:
  // All addresses are at least `base`; sizes are rounded up to multiples of `unit`.
  AddressSpace(std::int64_t base, std::int64_t unit) : unit_(unit), base_(base), end_(base) {}

  // Returns the address of a new block, which overlaps no block that is allocated.
  std::int64_t allocate(std::int64_t bytes);
  void free(std::int64_t address);  // of an allocated block

  std::int64_t base() const { return base_; }
  std::int64_t end() const { return end_; }  // behind the last address that was ever used
  // Rounded bytes of the allocated blocks, by address.
  const std::map<std::int64_t, std::int64_t>& blocks() const { return blocks_; }

private:
  std::int64_t unit_, base_, end_;
  std::map<std::int64_t, std::int64_t> blocks_, free_;  // bytes by address; free places do not touch
};

}  // namespace rehearse
