// Temporary numbers whose alignment is always the same. Sums of vectors begin with what is not aligned, so
// that their rounding would depend on where the allocator put them.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace rehearse {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: converts, as allocators do
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* at, std::size_t) { ::operator delete(at, kAlignment); }
  template <class U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};
using AlignedFloats = std::vector<float, AlignedAllocator<float>>;

}  // namespace rehearse
