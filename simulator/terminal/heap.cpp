#include "simulator/terminal/heap.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace rehearse {

void use_huge_pages_for_heap() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  constexpr int kReservedBytes = 256 << 20, kNever = 1 << 30;
  constexpr std::uintptr_t kPageBytes = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kNever);  // take large blocks from the heap as well
  mallopt(M_TRIM_THRESHOLD, kNever);  // never return heap pages to the system
  const auto before = reinterpret_cast<std::uintptr_t>(sbrk(0));
  mallopt(M_TOP_PAD, kReservedBytes);
  void* volatile probe = std::malloc(1 << 20);  // more than is left in the heap, so it grows
  std::free(probe);                             // volatile: compilers remove a pair of malloc and free
  mallopt(M_TOP_PAD, 1 << 20);
  const auto after = reinterpret_cast<std::uintptr_t>(sbrk(0));
  // Another allocator or a memory limit kept the heap from growing.
  if (after < before + kReservedBytes) return;
  const std::uintptr_t first = (before + kPageBytes - 1) / kPageBytes * kPageBytes;
  madvise(reinterpret_cast<void*>(first), after - first, MADV_HUGEPAGE);  // NOLINT: an address
#endif
}

}  // namespace rehearse
