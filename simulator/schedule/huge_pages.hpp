// Reserves memory for large vectors in pages of 2 MiB.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace rehearse {

// Reserves memory for `elements` in huge pages if the system provides them on request: without them, first
// touching the pages of a step's ops takes a tenth of a simulation's time. Has no other effect.
template <class Element>
void reserve_in_huge_pages(std::vector<Element>& vector, std::size_t elements) {
  vector.reserve(elements);
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(vector.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(vector.data() + vector.capacity()) / page * page;
  constexpr std::uintptr_t kHugePage = 2 << 20;
  if (end > begin + kHugePage) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace rehearse
